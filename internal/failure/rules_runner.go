package failure

// What test runners say. Their verdict weighs more than the words of the
// tests: a test named TestTimeout that fails is a test failure.
var runnerRules = []rule{
	{TestFailure, 87, "--- fail:", `^\s*--- FAIL: \S`, "", 0, nil},
	{TestFailure, 82, "fail", `^FAIL\s+\S+\s+(\[?[\d.]+s?\]?|\(cached\))|^\s*FAIL\s+\S+.*(test|spec|›|>)|^\s*FAIL:? \S+ \(|: FAIL$`, `\[(build|setup) failed\]`, 0, nil},
	{TestFailure, 86, "test result: failed|tests failed|test failed|tests failed.|tests failed,|failing|failures!|errors!|some tests failed|there was 1 failure|there was 1 error|there were failing tests|there are test failures|test run failed|tests did not pass", `(?i)test result: FAILED|\b[1-9]\d* tests? failed|^\s*[1-9]\d* failing\b|FAILURES!|ERRORS!|some tests failed|^error: (\d+ )?(test|target)s? failed|: test failed|There (was|were) \d+ (failure|error)|there (were|are) (failing|test fail)|tests did not pass|test run failed`, `(?i)npm ERR|npm error|"npm`, 0, nil},
	{TestFailure, 86, "failed|errors|error|failures|failure|errored", "", "", 0, both(countsFailures, without("outside of examples"))},
	{TestFailure, 86, "failed", `^  [1-9]\d* failed\s*$`, "", 0, counted},
	{TestFailure, 85, "failed", `^(FAILED|FAIL) \S+(::|\.py|\.test\.|\.spec\.)`, "", 0, nil},
	{TestFailure, 70, "errors|error", "", "", 0, countsErrors},
	{TestFailure, 84, "error", `^ERROR \S+\.py::\S+`, "", 0, both(starts, with(".py::"))},
	{TestFailure, 86, "not ok", `^\s*not ok\b( \d+)?`, `(?i)# (todo|skip)`, 0, starts},
	{TestFailure, 82, "assertionerror|assertion failed|assertion `|failed asserting|assertionfailederror|comparisonfailure|xctassert|assertion with|expectation failed|expect(|failure/error:", `(?i)AssertionError\b|assertion failed|assertion .left|expect\(.*\)\.(not\.)?to|failed asserting|AssertionFailedError|ComparisonFailure|XCTAssert\w+ failed|Assertion with .* failed|Failure/Error:`, `^\s*(at|\d+ \||>|\||import|from|//|#)`, inside, nil},
	{TestFailure, 84, "panicked at", `^thread '\S*(test|::)\S*' .*panicked at`, "", 0, nil},
	{TestFailure, 84, "failed examples:|failed example:|failing tests:|summary of all failing tests|failed suites|dubious, test returned|failed tests:|list of failed tests|the following tests failed|errors while running ctest|tests failed out of|test description was", "", "", stated, without("0 tests failed")},
	{TestFailure, 85, "test case|test suite|test ", `(?i)^\s*Test (Case|Suite) .* failed\b|^Test Suite .* failed|\bTest #\d+: .*\*\*\*(Failed|Timeout|Exception)|^\s*test \S+ \.\.\. FAILED|^Test \S+ failed`, "", 0, then("failed", "***")},
	{TestFailure, 86, "[  failed  ]|failed test|failed tests", `^\[  FAILED  \]|^\s*[1-9]\d* FAILED TESTS?\s*$`, "", 0, nil},
	{TestFailure, 85, "//", `^//\S*:\S+\s+(\(cached\) )?(FAILED|TIMEOUT)\b`, "", inside, starts},
	{TestFailure, 80, "[fail]|failure:|<<< fail|<<< error|fail!", `(?i)\[FAIL\]|<<< (FAIL|ERROR)|^\s*\d+\. (Failure|Error): .*|\d+\) (Failure|Error):|^FAIL!  ?:`, "", inside, nil},
	{TestFailure, 82, "fail (|fail code", `^\s+\S[^:]{0,80}:\s+FAIL( code \d+)?( \(\d|\s*$)`, "", inside, nil},
	{TestFailure, 84, "exceeded timeout of|test timeout of|timeout of|test timed out in|timeout exceeded. for async|extest", `(?i)exceeded timeout of \d+ ?ms|test timeout of \d+ ?ms exceeded|timeout of \d+ ?ms exceeded\. for async|test timed out in \d+ ?ms`, "", loud, nil},
	{TestFailure, 84, "failures|failure|errors", `^([1-9]\d* failures?, \d+ errors?|\d+ failures?, [1-9]\d* errors?)\.?$`, "", 0, counted},
	{TestFailure, 82, "fail in (|error in (|test failed at|thresholds on metrics", `^(FAIL|ERROR) in \(|Test Failed at |thresholds on metrics .* crossed`, "", 0, nil},
	{TestFailure, 80, "execution failed for task", `Execution failed for task ':(\w+:)*\w*[tT]est\w*'`, "", 0, nil},
	{TestFailure, 83, "failed", `^\s*\S.* > .* FAILED\s*$|^\s*(✕|✗|✘|×|✖) \S`, `(?i)\[error\]|build failed|failed to |error:`, 0, with(" > ", "✕", "✗", "✘", "×", "✖")},
	{TestFailure, 80, "✕|✗|✘", `^\s*(✕|✗|✘) \S`, `(?i)\[error\]|build failed|failed to |error:`, inside, nil},
	{TestFailure, 80, "race detected during execution of test|test failed. see exception|exception caught by flutter test|caught during testing|snapshot failed|snapshots failed|snapshot does not match|obsolete snapshot|mutation score|coverage threshold|does not meet global threshold|required test coverage", "", "", inside, nil},
	{TestFailure, 81, "- expected|+ received|expected call|differs from expected|does not match expected|is not equal to|==diff==|actual output|expected output", `(?i)^\s*[-+] (expected|received)\b|missing \d+ expected call|={4,}DIFF={4,}|(output|result) (differs from|does not match) expected|\(".*"\) is not equal to`, "", inside, nil},

	// A test file that could not be loaded: what stopped it is the cause.
	{Unknown, 0, "error collecting|test suite failed to run|failed suites|error occurred while loading|failed to import test module|occurred outside of examples|during collection|no tests ran", "", "", loading, nil},
}

// Exceptions that nobody caught, by what runtimes print around them.
var exceptionRules = []rule{
	{Crash, 52, "traceback (most recent call last)|uncaught exception|unhandled exception|unhandledpromiserejection|unhandled rejection|unhandled error|unhandled 'error' event|exception in thread|uncaughtexception|unhandled promise rejection|uncaught error|uncaught|undefined method|unhandled promise|caused by:|goroutine 1 [running]", "", "", inside | stated, without("no such file or directory", "file not found")},
	{Crash, 88, "php fatal error", "", "", 0, with("uncaught")},
	{Crash, 56, "panic:|fatal error:|php fatal error|fatal python error|runtime error", `^panic: |^fatal error: |PHP Fatal error|runtime error: `, "", 0, without("no such file or directory", "file not found", "test timed out")},
	{Crash, 54, "(runtimeerror)|(nomethoderror)|(typeerror)|(argumenterror)|(nameerror)|(zerodivisionerror)|(keyerror)|(frozenerror)|(systemstackerror)|** (", `\((\w+Error)\)|^\s*\*\* \(\w+`, "", 0, without("compileerror", "(mix)")},
	{Crash, 54, "panicked at", `^thread '\S+' .*panicked at`, "", 0, nil},
	{Crash, 50, "error|exception", "", "", inside, namesException},
	{Crash, 55, "recursionerror|nil pointer dereference|index out of range|index out of bounds|null pointer|nullpointerexception|typeerror|referenceerror|keyerror|nameerror|attributeerror|zerodivisionerror|division by zero|divide by zero|rangeerror|indexerror|unboundlocalerror|badmatch|undefined function|arrayindexoutofbounds|nullreferenceexception|classcastexception|illegalstateexception|concurrentmodificationexception", "", "", stated, without("nil pointer evaluating")},
	{Crash, 52, "can't call method|attempt to index|attempt to call|attempt to perform arithmetic|attempt to compare|attempt to concatenate|execution halted", "", "", stated, nil},
	{Crash, 52, "no such variable", `^can't read "`, "", 0, nil},
	{Crash, 46, "node.js v", `^Node\.js v\d+`, "", 0, nil},
	{Validation, 72, "jsondecodeerror|json.parse|is not valid json|unexpected token|unexpected non-whitespace character|json at position|in json|unexpected end of json input|yamlexception|yaml.scanner|yaml.parser|while parsing a|psych::syntaxerror|yamlerror|tomldecodeerror|tomllib|mapping values are not allowed|invalid yaml|failed to parse yaml|json.decoder|yaml: line|could not find expected|json parse error|jsonparseerror|ejsonparse|toml parse error|invalid json|unmarshal errors|cannot unmarshal|invalid character|cannot parse json|malformed json|invalid toml|error converting yaml", `(?i)JSONDecodeError|JSON\.parse|valid JSON|in JSON|JSON (at position|input)|non-whitespace|yaml(Exception|\.scanner|\.parser|Error|: )|converting yaml|while parsing a (block|flow)|Psych::SyntaxError|TOMLDecode|mapping values|(invalid|parse|parsing|malformed) (yaml|json|toml)|(yaml|json|toml) (parse|parsing) error|JSONParseError|EJSONPARSE|cannot unmarshal|unmarshal errors|invalid character '.*' (looking|after|in)`, "", stated, nil},
	{Validation, 85, "-->", "", "", 0, arrow([]string{"error: ", "error["}, "toml", "json", "yaml", "yml", "lock")},
	{Network, 72, "connectionrefusederror|connectionreseterror|brokenpipeerror|urlerror|gaierror|connection error|remotedisconnected|clientconnectorerror|maxretryerror", "", "", stated, nil},
	{Dependency, 86, "modulenotfounderror|importerror", `^\s*E?\s*(ModuleNotFoundError|ImportError)\b`, "", 0, nil},
}
