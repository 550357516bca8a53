package failure

// What test runners say. Their verdict weighs more than the words of the
// tests: a test named TestTimeout that fails is a test failure.
var runnerRules = []rule{
	{TestFailure, 87, "--- fail:", `^\s*--- FAIL: \S`, "", 0, nil},
	{TestFailure, 82, "fail", `^FAIL\s+\S+\s+(\[?[\d.]+s?\]?|\(cached\))|^\s*(FAIL|✕|✗|×)\s+\S+.*(test|spec|›|>)`, `\[(build|setup) failed\]`, 0, nil},
	{TestFailure, 86, "test result: failed|tests failed|test failed|tests failed.|failing|failures!|some tests failed", `(?i)test result: FAILED|\b[1-9]\d* tests? failed|^\s*[1-9]\d* failing\b|FAILURES!|some tests failed|^error: (\d+ )?(test|target)s? failed|: test failed|There (was|were) \d+ (failure|error)`, `(?i)npm ERR|npm error|"npm`, 0, nil},
	{TestFailure, 86, "failed|errors|error|failures|failure|errored", "", `(?i)outside of examples`, 0, countsFailures},
	{TestFailure, 85, "failed", `^(FAILED|FAIL) \S+(::|\.py|\.test\.|\.spec\.)`, "", 0, nil},
	{TestFailure, 70, "errors|error", "", "", 0, countsErrors},
	{TestFailure, 84, "error", `^ERROR \S+\.py::\S+`, "", 0, begins("ERROR ")},
	{TestFailure, 86, "not ok", `^\s*not ok\b( \d+)?`, `(?i)# (todo|skip)`, 0, nil},
	{TestFailure, 82, "assertionerror|assertion failed|assertion `|expected:|toequal|tobe|expectation failed|failed asserting|assertionfailederror|comparisonfailure|xctassert|assertion|comparison failed", `(?i)AssertionError\b|assertion failed|assertion .left|expect\(.*\)\.(not\.)?to|failed asserting|AssertionFailedError|ComparisonFailure|XCTAssert\w+ failed|\bXCTAssert|Assertion with .* failed`, `^\s*(at|\d+ \||>|\||import|from|//|#)`, 0, nil},
	{TestFailure, 84, "panicked at", `^thread '\S*(test|::)\S*' .*panicked at`, "", 0, nil},
	{TestFailure, 83, "failure/error:|failed examples:|failing tests:|summary of all failing tests|failed suites|dubious, test returned|test case", `(?i)Failure/Error:|Failed examples:|failing tests:|Dubious, test returned|Test Case .* failed|Failed Tests`, "", 0, nil},
	{TestFailure, 80, "[fail]|failure:|<<< fail|<<< error", `(?i)\[FAIL\]|<<< (FAIL|ERROR)|^\s*\d+\. (Failure|Error): .*|\d+\) (Failure|Error):`, "", 0, nil},
	{TestFailure, 80, "fail (|: fail", `^\s+\S[^:]{0,80}:\s+FAIL( \(\d|\s*$)|: FAIL$`, "", inside, nil},
	{TestFailure, 81, "missing 1 expected call|expected call|==diff==|========diff|unexpected exception caught during testing|failed, duration|is not equal to|test_runner.py", `(?i)expected call|={4,}DIFF={4,}|caught during testing|\d+/\d+ - \S+ failed, Duration|failed: \(".*"\) is not equal to`, "", 0, nil},
	{TestFailure, 80, "there are test failures|tests failures|execution failed for task ':test|failing test", `(?i)there are test failures|Execution failed for task ':(\w+:)*\w*test`, "", 0, nil},
	{TestFailure, 80, "✕|✗|✘", `^\s*(✕|✗|✘) \S`, "", 0, nil},
	{TestFailure, 80, "data race|race detected during", `(?i)race detected during execution of test`, "", 0, nil},
	{TestFailure, 82, "threw exception|multiple exceptions was thrown|test failed. see exception|the test description was|expected to fail", `(?i)Test failed\. See exception|the test description was`, "", 0, nil},

	// A test file that could not be loaded: what stopped it is the cause.
	{Unknown, 0, "error collecting|test suite failed to run|failed suites|error occurred while loading|occurred outside of examples|during collection|no tests ran", "", "", loading, nil},
}

// Exceptions that nobody caught, by what runtimes print around them.
var exceptionRules = []rule{
	{Crash, 52, "traceback (most recent call last)|uncaught exception|unhandled exception|unhandledpromiserejection|unhandled rejection|unhandled error|panic:|fatal error:|exception in thread|uncaughtexception|unhandled promise rejection|uncaught error|(runtimeerror)|(nomethoderror)|undefined method|assertion violation", `(?i)traceback \(most|uncaught|unhandled|^panic: |^fatal error: |exception in thread|undefined method|\((RuntimeError|NoMethodError|TypeError|ArgumentError|NameError|ZeroDivisionError|KeyError)\)`, `(?i)no such file or directory|file not found`, 0, nil},
	{Crash, 54, "panicked at", `^thread '\S+' .*panicked at`, "", 0, nil},
	{Crash, 50, "error|exception", "", "", inside, namesException},
	{Crash, 55, "unrecovered|recursionerror|nil pointer dereference|index out of range|null pointer|nullpointerexception|typeerror|referenceerror|keyerror|nameerror|attributeerror|zerodivisionerror", "", `(?i)^\s*(at|raise|except|import|from|catch|//|#|[>|])`, 0, nil},
	{Crash, 46, "node.js v", `^Node\.js v\d+`, "", 0, nil},
	{Validation, 72, "jsondecodeerror|json.parse|unexpected token|json at position|in json|yamlexception|yaml.scanner|yaml.parser|while parsing a|psych::syntaxerror|yamlerror|tomldecodeerror|mapping values are not allowed|invalid yaml|failed to parse yaml|json.decoder|yaml: line|could not find expected|json parse error|jsonparseerror|ejsonparse|toml parse error|invalid json|unmarshal errors|cannot unmarshal", `(?i)JSONDecodeError|JSON\.parse|in JSON|JSON at position|yaml(Exception|\.scanner|\.parser|Error|: line)|while parsing a (block|flow)|Psych::SyntaxError|TOMLDecode|mapping values|(invalid|parse|parsing) (yaml|json|toml)|(yaml|json|toml) (parse|parsing) error|JSONParseError|EJSONPARSE|cannot unmarshal|unmarshal errors`, `(?i)✕|✗|not ok|^\s*at `, 0, nil},
	{Network, 72, "connectionrefusederror|connectionreseterror|brokenpipeerror|urlerror|gaierror|connection error", `(?i)^(\w+\.)*(Connection\w*Error|BrokenPipeError|URLError|gaierror|APIConnectionError)`, "", 0, nil},
	{Dependency, 86, "modulenotfounderror|importerror", `^\s*E?\s*(ModuleNotFoundError|ImportError)\b`, "", 0, nil},
}

// Wrong flags, names, requests, files of configuration.
var usageRules = []rule{
	{Validation, 87, "unknown option|unknown flag|unrecognized option|unrecognized arguments|unrecognised option|unexpected argument|invalid option|illegal option|unknown argument|unknown shorthand flag|flag provided but not defined|flag needs an argument|the following arguments are required|required option|missing required|requires an argument|invalid choice|unknown subcommand|unrecognized subcommand|no such option|no such command|unknown command|invalid argument|invalid value|bad option|no such subcommand|is not a valid command|invalid switch|missing argument|too few arguments|expected at least|unrecognized command|is not a docker command|is not a git command|no such flag|unexpected option|bad flag|unrecognized flag|unsupported option|missing operand|required argument|ambiguous option|msb1008|msb1009|msb4025|msb1003", "", `(?i)function call|to function|\.(c|cpp|go|rs|java|kt|cs|swift|hs):\d+|\bassert|\bexpect\b|✕|not ok|command not found|error (CS|TS)\d`, setup, nil},
	{Validation, 87, "missing script|no rule to make target|task not found|could not find task|no such task|unknown target|don't know how to build task|unknown task|not found in root project|no targets specified|no makefile found|no configuration file|no pom in this directory|missingprojectexception|no such script|script not found|command \"|unknown lifecycle phase|no project found|project file does not exist|could not determine which project|no such target|no tests found matching|no such session|session not found|no conversation found|no matching session", `(?i)missing script|no rule to make target|task .*not found|no such (task|target|script|session)|unknown (target|task|lifecycle)|don't know how to build|no targets specified|no makefile|no configuration file|no POM|MissingProject|project file does not exist|could not (find task|determine which)|session (not found|ID)|no (conversation|matching session)`, "", setup, nil},
	{Validation, 86, "error loading config|invalid configuration|invalid config|configuration error|config error|failed to load config|error in config|unknown variant|unknown field|missing field|unknown property|unknown key|additional properties|is not allowed by schema|schema validation|does not match schema|validation error|invalid reference format|could not compile build file|error parsing|failed to parse|startup failed|a problem occurred evaluating|unknown directive|invalid parameter|configerror|configuration is invalid|options has an unknown property|invalid options object|must be a list|must be a string|must be a number|must be one of|is required|should be one of|not a valid|invalid input syntax|unbound variable|parameter not set|parameter null or not set|must be set|is not set|unsupported argument|reference to undeclared|invalid template|no configuration|extra inputs are not permitted|field required|input should be", `(?i)(config|configuration|unknown (variant|field|property|key|directive)|missing field|schema|validation error|invalid (reference|options|parameter|input|template)|build file|error parsing|failed to parse|startup failed|evaluating|must be (a|one|set)|should be one of|required|not a valid|unbound variable|parameter (not|null)|is not set|unsupported argument|undeclared|not permitted|input should)`, `(?i)\.(c|cpp|go|rs|java|kt|cs|swift|hs):\d+|\bassert|\bexpect\(|warning|✕|not ok|hint:|WARN`, setup, nil},
	{Validation, 70, "xcodebuild: error|unable to find a destination|msbuild : error", "", "", setup, nil},
	{Validation, 60, "invalid|does not exist|not supported|unsupported|must be|failed validation|illegal", "", `(?i)\.(c|cpp|go|rs|java|kt|cs|swift|hs):\d+|\bassert|\bexpect\b|✕|not ok|command not found`, 0, reportsError},
	{Validation, 62, "valueerror|argumenterror|illegalargumentexception|invalidargumentexception|badrequesterror|err_invalid_arg_type|err_invalid_arg_value", `(?i)(BadRequestError|ERR_INVALID_ARG|ValidationError)`, `(?i)^\s*(at|raise|except)`, 0, nil},
}
