package config

// rule is one row of what pawl knows of building, testing and linting.
type rule struct {
	// group is the ecosystem. Of a group's rules of one kind only the first counts
	// that applies; all of its set-ups do.
	group, kind string
	// when names files at the root that must be there: "a|b" is either, "*.x" any
	// that match, "file~expr" one whose text matches, "!a" none, "$prog" a program of
	// this machine.
	when    string
	command string
}

// rules are the ecosystems but those of Node and Python, whose tools ask for more
// than a row: node.go, python.go. {wrapper} is replaced by a script of the repository
// that gets the tool, where there is one.
var rules = []rule{
	{"go", "setup", "go.sum", "go mod download"},
	{"go", "build", "go.mod", "go build ./..."},
	{"go", "test", "go.mod", "go test ./..."},
	{"go", "lint", "go.mod .golangci.yml|.golangci.yaml|.golangci.toml|.golangci.json $golangci-lint",
		"golangci-lint run"},
	{"go", "lint", "go.mod", "go vet ./..."},

	{"rust", "setup", "Cargo.toml Cargo.lock", "cargo fetch --locked"},
	{"rust", "setup", "Cargo.toml !Cargo.lock", "cargo fetch"},
	{"rust", "build", `Cargo.toml~(?m)^\[workspace\]`, "cargo build --workspace"},
	{"rust", "build", "Cargo.toml", "cargo build"},
	{"rust", "test", `Cargo.toml~(?m)^\[workspace\]`, "cargo test --workspace"},
	{"rust", "test", "Cargo.toml", "cargo test"},
	{"rust", "lint", "Cargo.toml clippy.toml|.clippy.toml", "cargo clippy --all-targets -- -D warnings"},
	{"rust", "warn", "Cargo.toml", "cargo clippy --all-targets -- -D warnings"},

	{"maven", "test", "pom.xml mvnw", "./mvnw -B -ntp test"},
	{"maven", "test", "pom.xml", "mvn -B -ntp test"},
	{"gradle", "test", "build.gradle|build.gradle.kts|settings.gradle|settings.gradle.kts gradlew", "./gradlew test"},
	{"gradle", "test", "build.gradle|build.gradle.kts|settings.gradle|settings.gradle.kts", "gradle test"},
	{"sbt", "test", "build.sbt", "sbt test"},
	{"mill", "test", "build.mill|build.sc", "mill __.test"},
	{"lein", "setup", "project.clj", "lein deps"},
	{"lein", "test", "project.clj", "lein test"},
	{"clojure", "test", `deps.edn~:test\b`, "clojure -M:test"},

	{"ruby", "setup", "Gemfile", "bundle config set --local path .bundle/gems"},
	{"ruby", "setup", "Gemfile", "echo '*' > .bundle/.gitignore"},
	{"ruby", "setup", "Gemfile", "bundle install"},
	{"ruby", "test", "Gemfile bin/rails test", "bin/rails test"},
	{"ruby", "test", "Gemfile .rspec|spec/spec_helper.rb", "bundle exec rspec"},
	{"ruby", "test", `Gemfile Rakefile~(?m)(TestTask|task[\s(]:?test\b|:test\b)`, "bundle exec rake test"},
	{"ruby", "test", `Gemfile Rakefile~default`, "bundle exec rake"},
	{"ruby", "lint", `Gemfile~rubocop .rubocop.yml`, "bundle exec rubocop"},
	{"ruby", "lint", `*.gemspec~rubocop Gemfile .rubocop.yml`, "bundle exec rubocop"},
	{"ruby", "lint", `Gemfile~\bstandard\b .standard.yml`, "bundle exec standardrb --no-fix"},

	{"php", "setup", "composer.json", "composer install --no-interaction --no-progress"},
	{"php", "test", `composer.json~"scripts"[^}]*"test"\s*:`, "composer test"},
	{"php", "test", `composer.json~pestphp/pest`, "vendor/bin/pest"},
	{"php", "test", "composer.json phpunit.xml|phpunit.xml.dist|phpunit.dist.xml", "vendor/bin/phpunit"},
	{"php", "typecheck", `composer.json~phpstan/phpstan phpstan.neon|phpstan.neon.dist|phpstan.dist.neon`,
		"vendor/bin/phpstan analyse --no-progress --memory-limit=1G"},
	{"php", "typecheck", `composer.json~vimeo/psalm psalm.xml|psalm.xml.dist`, "vendor/bin/psalm --no-progress"},
	{"php", "lint", `composer.json~(?i)squizlabs/php_codesniffer|coding-standard phpcs.xml|phpcs.xml.dist|.phpcs.xml`,
		"vendor/bin/phpcs"},
	{"php", "lint", `composer.json~friendsofphp/php-cs-fixer .php-cs-fixer.php|.php-cs-fixer.dist.php`,
		"vendor/bin/php-cs-fixer check"},

	{"dotnet", "setup", "*.sln|*.slnx|*.csproj|*.fsproj", "dotnet restore"},
	{"dotnet", "build", "*.sln|*.slnx|*.csproj|*.fsproj", "dotnet build --no-restore"},
	{"dotnet", "test", "*.sln|*.slnx|*.csproj|*.fsproj", "dotnet test --no-build"},

	{"elixir", "setup", "mix.exs", "mix local.hex --force --if-missing"},
	{"elixir", "setup", "mix.exs", "mix deps.get"},
	{"elixir", "test", "mix.exs", "mix test"},
	{"elixir", "lint", "mix.exs .formatter.exs", "mix format --check-formatted"},
	{"erlang", "setup", "rebar.config", "rebar3 get-deps"},
	{"erlang", "test", "rebar.config test/*_SUITE.erl", "rebar3 ct"},
	{"erlang", "test", "rebar.config", "rebar3 eunit"},
	{"gleam", "setup", "gleam.toml", "gleam deps download"},
	{"gleam", "test", "gleam.toml", "gleam test"},
	{"gleam", "lint", "gleam.toml", "gleam format --check"},

	{"swift", "setup", "Package.swift", "swift package resolve"},
	{"swift", "build", "Package.swift", "swift build"},
	{"swift", "test", "Package.swift Tests", "swift test"},
	{"flutter", "setup", `pubspec.yaml~sdk:\s*flutter`, "flutter pub get"},
	{"flutter", "test", `pubspec.yaml~sdk:\s*flutter test`, "flutter test"},
	{"flutter", "lint", `pubspec.yaml~sdk:\s*flutter`, "flutter analyze"},
	{"dart", "setup", "pubspec.yaml !pubspec.yaml~sdk:\\s*flutter", "dart pub get"},
	{"dart", "test", "pubspec.yaml !pubspec.yaml~sdk:\\s*flutter test", "dart test"},
	{"dart", "lint", "pubspec.yaml !pubspec.yaml~sdk:\\s*flutter", "dart analyze"},
	{"haskell", "setup", "stack.yaml", "stack build --test --only-dependencies"},
	{"haskell", "test", "stack.yaml", "stack test"},
	{"haskell", "setup", "*.cabal|cabal.project !stack.yaml", "cabal update"},
	{"haskell", "test", "*.cabal|cabal.project", "cabal test all"},
	{"ocaml", "build", "dune-project", "dune build"},
	{"ocaml", "test", "dune-project", "dune runtest"},
	{"julia", "setup", `Project.toml~(?m)^uuid`, "julia --project -e 'using Pkg; Pkg.instantiate()'"},
	{"julia", "test", `Project.toml~(?m)^uuid test/runtests.jl`, "julia --project -e 'using Pkg; Pkg.test()'"},
	{"zig", "test", `build.zig~\btest\b`, "zig build test"},
	{"zig", "build", "build.zig", "zig build"},
	{"nim", "setup", "*.nimble", "nimble install --depsOnly --accept"},
	{"nim", "test", "*.nimble", "nimble test"},
	{"crystal", "setup", "shard.yml", "shards install"},
	{"crystal", "test", "shard.yml spec", "crystal spec"},
	{"crystal", "lint", "shard.yml", "crystal tool format --check"},
	{"d", "test", "dub.json|dub.sdl", "dub test"},
	{"deno", "test", `deno.json|deno.jsonc`, "deno test"},
	{"deno", "lint", "deno.json|deno.jsonc", "deno lint"},
	{"elm", "test", "elm.json tests", "elm-test"},
	{"perl", "setup", "cpanfile", "cpanm --notest --local-lib-contained local --installdeps ."},
	{"perl", "test", "cpanfile t", "prove -lr -Ilocal/lib/perl5 t"},
	{"perl", "test", "Makefile.PL|Build.PL|dist.ini t", "prove -lr t"},
	{"lua", "test", ".busted", "busted"},
	{"terraform", "setup", "*.tf", "terraform init -backend=false -input=false"},
	{"terraform", "build", "*.tf", "terraform validate"},
	{"terraform", "lint", "*.tf", "terraform fmt -check -recursive"},

	{"bazel", "test", "MODULE.bazel|WORKSPACE.bazel|WORKSPACE", "bazel test //..."},
	{"cmake", "build", "CMakeLists.txt", "{ignore build}cmake -S . -B build && cmake --build build"},
	{"cmake", "test", `CMakeLists.txt~(?i)enable_testing|include\s*\(\s*CTest|add_test`,
		"ctest --test-dir build --output-on-failure"},
	{"meson", "setup", "meson.build", "meson setup build"},
	{"meson", "build", "meson.build", "meson compile -C build"},
	{"meson", "test", "meson.build", "meson test -C build --print-errorlogs"},
	{"autotools", "setup", "configure.ac|configure.in autogen.sh", "./autogen.sh && ./configure"},
	{"autotools", "setup", "configure.ac|configure.in !autogen.sh", "autoreconf -fi && ./configure"},
	{"autotools", "test", "configure.ac|configure.in", "make check"},

	{"bats", "test", "bin/bats test/*.bats !package.json", "bin/bats test"},
	{"bats", "test", "test/*.bats !package.json", "bats test"},
	{"bats", "test", "tests/*.bats !package.json", "bats tests"},
}
