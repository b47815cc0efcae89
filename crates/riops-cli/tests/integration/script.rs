//! pgbench scripts: `riops script check`, and the language beside pgbench itself.

use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use riops_script::evaluate::Context;
use riops_script::random::Random;
use riops_script::{Action, Names, Type, Value, Variables, parse};

use crate::fixture::{self, CommandOutput, Database, database, folder};

/// Seed of both programs.
const SEED: u64 = 5432;

fn pgbench(database: &Database, arguments: &[&str], script: &str) -> CommandOutput {
    let program = fixture::program("pgbench").unwrap();
    let file = folder(&database.conninfo.database).join("script.sql");
    std::fs::write(&file, script).unwrap();
    let mut command = Command::new(program);
    let seed = format!("--random-seed={SEED}");
    command.args(["-n", "-t", "1", &seed, "-f"]).arg(&file).args(arguments).arg(&database.url);
    CommandOutput::run(&mut command)
}

/// Expressions of any form, most of which have a value.
fn expressions() -> impl Strategy<Value = String> {
    let literal = prop_oneof![
        6 => (-20i64..20).prop_map(|value| value.to_string()),
        1 => any::<i64>().prop_map(|value| value.to_string()),
        1 => Just("-9223372036854775808".to_owned()),
        1 => Just("9223372036854775807".to_owned()),
        3 => (-1e4..1e4).prop_map(|value: f64| format!("{value:.3}")),
        1 => (-1e300..1e300).prop_map(|value: f64| format!("{value:e}")),
        2 => prop::sample::select(vec!["null", "NULL", "true", "FALSE", ".5", "5.", "1e2"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![":i", ":d", ":t", ":n"]).prop_map(str::to_owned),
    ];
    literal.prop_recursive(5, 40, 4, |inner| {
        let operators = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "|", "&", "#", "<<", ">>", "<", ">", "=", "<=", ">=", "<>", "!=", "and", "or", "AND",
        ]);
        let unary = prop::sample::select(vec!["-", "+", "~", "not "]);
        let postfix = prop::sample::select(vec![
            "is null", "is not null", "isnull", "notnull", "is true", "is not false", "IS NOT TRUE",
        ]);
        let one = prop::sample::select(vec![
            "abs", "int", "double", "sqrt", "ln", "exp", "debug", "hash", "hash_fnv1a", "Hash_Murmur2", "least",
        ]);
        let two = prop::sample::select(vec!["mod", "power", "pow", "greatest", "least", "hash", "random", "permute"]);
        prop_oneof![
            4 => (inner.clone(), operators, inner.clone()).prop_map(|(a, o, b)| format!("{a} {o} {b}")),
            2 => inner.clone().prop_map(|a| format!("({a})")),
            2 => (unary, inner.clone()).prop_map(|(o, a)| format!("{o} {a}")),
            1 => (inner.clone(), postfix).prop_map(|(a, o)| format!("{a} {o}")),
            2 => (one, inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            2 => (two, inner.clone(), inner.clone()).prop_map(|(f, a, b)| format!("{f}({a}, {b})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("case when {a} then {b} else {c} end")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("CASE WHEN {a} THEN {b} END")),
            1 => (1i64..1000, 2u32..50).prop_map(|(n, p)| format!("random_exponential(1, {n}, {p})")),
            1 => (1i64..1000, 2u32..50).prop_map(|(n, p)| format!("random_gaussian(-{n}, {n}, {p}.5)")),
            1 => (1i64..1000, 1u32..5).prop_map(|(n, p)| format!("random_zipfian(1, {n}, {p}.2)")),
            1 => (1i64..1000).prop_map(|n| format!("random(-{n}, {n} * 1000)")),
        ]
    })
}

/// The variables of all expressions.
const VARIABLES: &str = "\\set i 7\n\\set d 2.5\n\\set t 1 = 1\n\\set n null\n";

/// Returns the commands that evaluate and debug these expressions.
fn debug_commands(expressions: &[String]) -> String {
    let lines: Vec<_> =
        expressions.iter().map(|expression| format!("\\set x debug({expression})\n")).collect();
    lines.concat()
}

/// Evaluates expressions as one client does; debugged values are written as by pgbench. An expression with an error
/// ends the list.
fn evaluate_all(expressions: &[String]) -> Result<Vec<String>, String> {
    let text = debug_commands(expressions);
    let mut names = Names::default();
    let script = parse("script", &format!("{VARIABLES}{text}"), &mut names)
        .map_err(|errors| errors[0].to_string())?;
    let mut base = Random::new(SEED);
    let mut random = Random::new(base.bits());
    let default_seed = names.slot("default_seed");
    let mut variables = Variables::new(&names);
    variables.set(default_seed, Value::Int(base.bits().cast_signed()));
    let mut values = Vec::new();
    for command in &script.commands {
        let Action::Set(slot, expression) = &command.action else { unreachable!() };
        let mut debug = |value: Value| {
            values.push(match value.kind() {
                Type::Null => "null".to_owned(),
                kind => format!("{kind} {value}"),
            });
        };
        let context = Context { variables: &mut variables, random: &mut random, debug: &mut debug };
        let value = { context }.evaluate(expression);
        let value = value.map_err(|error| error.describe(&names, &variables))?;
        variables.set(*slot, value);
    }
    Ok(values)
}

fn debugged_values(stderr: &str) -> Vec<String> {
    let values =
        stderr.lines().filter_map(|line| line.split_once("debug(script=")?.1.split_once("): "));
    values.map(|(_, value)| value.to_owned()).collect()
}

/// Runs a command without a server.
fn riops(line: &str) -> CommandOutput {
    CommandOutput::run(&mut fixture::command(line))
}

/// Writes a script of this test and returns its path.
fn write_script(name: &str, text: &str) -> String {
    let file = folder(&format!("script_{name}")).join(format!("{name}.sql"));
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn check_shows_statements_with_types_and_plans() {
    let database = database("script_check");
    database.connect().execute("create table t (a int primary key, b text)").unwrap();
    let file = write_script(
        "good",
        "\\set a random(1, 10 * :scale)\nbegin;\nselect b from t\n where a = :a and b <> :name;\n\
         update t set b = :name where a = :a \\; select 1;\nend;\n",
    );
    let checked = database.riops(&format!("script check {file} -D name=x")).expect(0);
    let text = checked.stdout.replace(&file, "good.sql");
    assert_eq!(
        text,
        "good.sql: 5 commands, 4 of them SQL\n\
         \ncommand 2, line 2\n  begin;\n    no plan\n\
         \ncommand 3, line 3\n  select b from t\n   where a = $1 and b <> $2;\n    $1 = :a  integer\n    $2 = :name  text\n    \
         Index Scan using t_pkey on t\n      Index Cond: (a = $1)\n      Filter: (b <> $2)\n\
         \ncommand 4, line 5\n  update t set b = $1 where a = $2 ; select 1;\n    $1 = :name\n    $2 = :a\n    \
         not checked: 2 statements at once need the simple protocol\n\
         \ncommand 5, line 6\n  end;\n    no plan\n"
    );
    let slice = write_script(
        "slice",
        "select x[1:n], :given::int from (select array[1, 2] as x, 1 as n) as t;",
    );
    let line = format!("script check {slice} -M simple --define given=1");
    let checked = database.riops(&line).expect(0);
    assert!(checked.stdout.contains("x[1:n], $1::int"), "{}", checked.stdout);
    assert!(checked.stdout.contains("    $1 = :given  integer\n"), "{}", checked.stdout);
    let refused = write_script("refused", "select * from missing where a = :client_id;");
    let checked = database.riops(&format!("script check {file} {refused} -D name=x")).expect(3);
    assert!(
        checked.stdout.contains("    refused: relation \"missing\" does not exist"),
        "{}",
        checked.stdout
    );
}

#[test]
fn check_reports_all_errors_of_all_scripts_without_a_server() {
    let one = write_script("one", "\\set x foo(1)\nselect 1;\n\\endif\n");
    let two = write_script("two", "select 'a;\n");
    let checked = riops(&format!("script check {one} {two} -d host=/nowhere")).expect(2);
    let text = checked.stderr.replace(&one, "one.sql").replace(&two, "two.sql");
    for expected in [
        "one.sql:1:8: unexpected function name (foo) in command \"set\"\n  \\set x foo(1)\n         ^ error found here\n",
        "one.sql:3:1: \\endif without matching \\if\n  \\endif\n  ^ error found here\n",
        "two.sql:1:8: the string is not closed\n  select 'a;\n         ^ error found here\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(checked.stdout, "");
    let undefined = write_script("undefined", "select :a;\n\\sleep :b\n");
    let offline = format!("script check --offline {undefined}");
    let checked = riops(&offline).expect(2);
    assert!(
        checked.stderr.contains("undefined.sql:1:8: undefined variable \"a\""),
        "{}",
        checked.stderr
    );
    assert!(
        checked.stderr.contains("undefined.sql:2:8: undefined variable \"b\""),
        "{}",
        checked.stderr
    );
    let simple = riops(&format!("{offline} -M simple")).expect(2);
    assert!(!simple.stderr.contains("\"a\""), "{}", simple.stderr);
    let fine = riops(&format!("{offline} -M simple --define b=1")).expect(0);
    assert!(fine.stdout.ends_with("undefined.sql: 2 commands, 1 of them SQL\n"), "{}", fine.stdout);
    riops("script check --offline /nowhere.sql")
        .expect(1)
        .stderr_contains("cannot read /nowhere.sql");
    let binary = folder("script_binary").join("binary.sql");
    std::fs::write(&binary, b"\nselect '\xff';").unwrap();
    let refused = riops(&format!("script check --offline {}", binary.display())).expect(2);
    refused.stderr_contains("binary.sql:2: the script is not valid UTF-8");
    for definition in ["1a=2", "x=", "x"] {
        riops(&format!("{offline} -D {definition}")).expect(2);
    }
}

#[test]
fn expressions_have_the_same_values_and_errors_as_in_pgbench() {
    if fixture::program("pgbench").is_none() {
        return;
    }
    let database = database("script_expressions");
    let mut runner = TestRunner::deterministic();
    let strategy = expressions();
    let (mut valued, mut failing) = (Vec::new(), Vec::new());
    while valued.len() < 400 || failing.len() < 60 {
        let expression = strategy.new_tree(&mut runner).unwrap().current();
        // Types are checked when a script is parsed, in pgbench only when the expression is evaluated.
        match evaluate_all(std::slice::from_ref(&expression)) {
            Err(error) if failing.len() < 60 && !error.contains("cannot use a") => {
                failing.push((expression, error));
            }
            Ok(_) if valued.len() < 400 => {
                valued.push(expression);
                // The random numbers depend on all that were drawn before, and may lead to an error.
                if evaluate_all(&valued).is_err() {
                    valued.pop();
                }
            }
            _ => {}
        }
    }
    let script = debug_commands(&valued);
    let expected = debugged_values(
        &pgbench(&database, &[], &format!("{VARIABLES}{script}select 1;\n")).expect(0).stderr,
    );
    let actual = evaluate_all(&valued).unwrap();
    assert_eq!(actual.len(), expected.len());
    for (position, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
        assert_eq!(actual, expected, "value {position}");
    }
    assert!(expected.len() >= valued.len());
    for (expression, error) in failing {
        let script = format!("{VARIABLES}\\set x debug({expression})\nselect 1;\n");
        let theirs = pgbench(&database, &[], &script);
        assert_ne!(theirs.code, Some(0), "{expression}: {error}\n{}", theirs.stderr);
    }
}

/// Lines of scripts. Together they are right or wrong, depending on their order.
const LINES: [&str; 34] = [
    "\\if true",
    "\\if 1 = 0 or null",
    "\\elif :i > 3",
    "\\else",
    "\\endif",
    "\\ENDIF",
    "select 1;",
    "select 1 as a",
    "select 2 as a \\; select 3 as b",
    "select 1 as a; select 2 as b \\gset",
    "\\gset",
    "\\gset p_",
    "\\aset",
    "select 1 as a \\aset q q",
    "\\set x :i + 1",
    "\\set x :i \\\n + 1",
    "\\set x (1",
    "\\set",
    "\\set x",
    "\\sleep 1 us",
    "\\sleep 1us",
    "\\sleep :i us",
    "\\sleep 1 us us",
    "\\sleep 1 hours",
    "\\sleep",
    "\\else now",
    "\\endif now",
    "\\nothing",
    "\\shell",
    "\\setshell x",
    "\\startpipeline now",
    "-- only a comment",
    "/* a comment */",
    "select 'a;b', $$;$$, (1), \"a;\" from (select 1 as \"a;\") t;",
];

#[test]
fn the_same_scripts_are_refused_as_by_pgbench() {
    if fixture::program("pgbench").is_none() {
        return;
    }
    let database = database("script_structure");
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(prop::sample::select(LINES.as_slice()), 1..7);
    let mut scripts: Vec<String> = LINES.iter().map(|line| (*line).to_owned()).collect();
    scripts.extend((0..200).map(|_| strategy.new_tree(&mut runner).unwrap().current().join("\n")));
    // Without their wrong lines, most scripts are right.
    let right: Vec<&str> = LINES.iter().copied().filter(|line| is_parsed(line)).collect();
    let strategy = prop::collection::vec(prop::sample::select(right), 1..9);
    scripts.extend((0..200).map(|_| strategy.new_tree(&mut runner).unwrap().current().join("\n")));
    let mut refused = 0;
    for script in scripts {
        let theirs = pgbench(&database, &["-D", "i=7"], &script);
        if is_parsed(&script) {
            assert_ne!(theirs.code, Some(1), "{script}\n{}", theirs.stderr);
        } else {
            refused += 1;
            assert_eq!(theirs.code, Some(1), "{script}\n{}", theirs.stderr);
        }
    }
    assert!((100..300).contains(&refused), "{refused}");
}

fn is_parsed(script: &str) -> bool {
    parse("script", script, &mut Names::default()).is_ok()
}
