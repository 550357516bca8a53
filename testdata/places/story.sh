# The small story of a user: doctor, run, stop, resume, diff, rollback, board. It is told in a place
# that $PLACE makes, and its last line is the verdict:
#
#	works
#	refused: SENTENCE   nothing works, and doctor, run and board say why before an agent is started
#	runs: SENTENCE      runs work, and doctor and board say why the board does not
#	broken: WHAT        anything else
#
# $PAWL is the program, $AT a folder for the place, $OUT one for what pawl says. $IN is what the place
# runs pawl in, and $LIMIT how many seconds a command may take.
mkdir -p "$OUT" "$AT/home" "$AT/repo"
export HOME="$AT/home"
git config --global user.name Ada
git config --global user.email ada@example.org
git config --global init.defaultBranch main
cd "$AT/repo" || exit

cat >agent.sh <<'END'
#!/bin/sh
case "$PAWL_CASE$1" in
slow)
	if ! [ -e once ]; then
		touch once
		echo begun
		exec sleep 600
	fi
	rm once
	echo work >made-slow
	echo '<promise>COMPLETE</promise>'
	;;
task-*)
	echo work >"made-$PAWL_CASE"
	echo '<promise>COMPLETE</promise>'
	;;
*)
	echo work >"made-$PAWL_ITERATION"
	git add "made-$PAWL_ITERATION" && git -c user.name=A -c user.email=a@example.org commit -qm "iteration $PAWL_ITERATION"
	[ "$PAWL_ITERATION" -lt 2 ] || echo '<promise>COMPLETE</promise>'
	;;
esac
END
chmod +x agent.sh
echo strong >tests
cat >pawl.yaml <<'END'
agent: mine
agents:
  mine: {command: [./agent.sh]}
  slow: {command: [./agent.sh, slow]}
verification: {commands: ["true"], protect: [tests]}
procedures:
  build: {act: [{content: Work.}]}
  slow: {agent: slow, max_iterations: 3, act: [{content: Work.}]}
END
git init -q && git add -A && git commit -qm start || exit

nr=0 code=0
pawl() {
	nr=$((nr + 1)) code=0
	timeout -k 5 "${LIMIT:-120}" $IN "$PAWL" "$@" >"$OUT/$nr" 2>&1 </dev/null || code=$?
}
said() { grep -qE "$1" "$OUT/$nr"; }
end() {
	printf '%s\n' "$1"
	exit
}
broken() { end "broken: $1 (exit $code): $(tail -n 4 "$OUT/$nr" | tr '\n' '|')"; }

# refused has the sentence of a command that refuses.
refused() {
	[ $code = 1 ] || [ $code = 2 ] || broken "$1"
	! said 'Iteration 1' || broken "$1 is refused after an agent worked"
	sentence=$(grep -m 1 '^pawl: ' "$OUT/$nr") || broken "$1 says nothing"
}

# refused_board is for what doctor has named already.
refused_board() {
	[ "$doctor" != 0 ] || broken 'doctor has no problem'
	pawl case add One
	pawl autopilot
	refused board
}

. "$PLACE"

pawl doctor
doctor=$code
[ $doctor = 0 ] || [ $doctor = 1 ] || broken doctor
pawl run build -n 2
if [ $code != 0 ]; then
	refused run
	first=$sentence
	refused_board
	end "refused: $first"
fi
[ -e made-1 ] && [ -e made-2 ] || broken 'the run delivered nothing'
grep -qx strong tests || broken 'the protected file is another'
pawl show build --diff
said made-1 || broken 'show --diff'

(OUT=$OUT/slow && mkdir "$OUT" && pawl run slow) &
slow=$!
tries=0
until $IN "$PAWL" logs slow 2>&1 | grep -q begun; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || broken 'the slow run does not begin'
	sleep 0.2
done
pawl stop slow
[ $code = 0 ] || broken stop
wait $slow
pawl resume slow
[ $code = 0 ] && [ -e made-slow ] || broken resume
pawl rollback build --to 1
[ $code = 0 ] && [ -e made-1 ] && ! [ -e made-2 ] || broken rollback
pawl ps -a
said 'build +completed' || broken ps

if [ $doctor != 0 ]; then
	refused_board
	end "runs: $sentence"
fi
pawl case add One
[ $code = 0 ] || broken 'case add'
pawl autopilot
[ $code = 0 ] && said 'task-001 landed' && [ -e made-task-001 ] || broken board
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
git fsck --strict >"$OUT/fsck" 2>&1 || broken "git fsck: $(cat "$OUT/fsck")"
end works
