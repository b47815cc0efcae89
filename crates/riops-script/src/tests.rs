//! Tests of the whole language.

use proptest::prelude::*;

use super::evaluate::{Context, EvaluateError};
use super::random::Random;
use super::*;

/// Parses a script that has no errors.
fn parsed(text: &str) -> (Script, Names) {
    let mut names = Names::default();
    let script =
        parse("a.sql", text, &mut names).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    (script, names)
}

/// Returns each error of a script as line, column and message.
fn errors(text: &str) -> Vec<(usize, usize, String)> {
    let mut names = Names::default();
    let errors = match parse("a.sql", text, &mut names) {
        Ok(script) => {
            let scripts = [script];
            let scope = Scope::new(&scripts, &names, &[], true);
            scope.errors(&scripts[0])
        }
        Err(errors) => errors,
    };
    errors.into_iter().map(|error| (error.line, error.column, error.message)).collect()
}

/// Evaluates an expression with the variables `i` 7, `d` 2.5, `t` TRUE, `n` NULL, `text` "0x10", `bad` "7up",
/// `empty` "", and `default_seed` 5432.
fn evaluated(expression: &str) -> Result<Value, EvaluateError> {
    let (script, mut names) = parsed(&format!("\\set x {expression}"));
    let slots: Vec<Slot> = ["i", "d", "t", "n", "text", "bad", "empty", "default_seed"]
        .iter()
        .map(|name| names.slot(name))
        .collect();
    let mut variables = Variables::new(&names);
    variables.set(slots[0], Value::Int(7));
    variables.set(slots[1], Value::Double(2.5));
    variables.set(slots[2], Value::Boolean(true));
    variables.set(slots[3], Value::Null);
    variables.set_text(slots[4], b"0x10");
    variables.set_text(slots[5], b"7up");
    variables.set_text(slots[6], b"");
    variables.set(slots[7], Value::Int(5432));
    let Action::Set(_, expression) = &script.commands[0].action else { panic!("no \\set") };
    let mut random = Random::new(Random::new(5432).bits());
    Context { variables: &mut variables, random: &mut random, debug: &mut |_| {} }
        .evaluate(expression)
}

#[test]
fn operators_have_the_values_of_pgbench() {
    let int = Value::Int;
    let double = Value::Double;
    let boolean = Value::Boolean;
    for (expression, value) in [
        ("1 + 2 * 3", int(7)),
        ("(1 + 2) * 3", int(9)),
        ("7 / 2 - 7 % 4", int(0)),
        ("-7 / 2", int(-3)),
        ("-7 % 3", int(-1)),
        ("7.5 % 2", int(0)),
        ("mod(9, 4)", int(1)),
        ("1 / 2.0", double(0.5)),
        ("1 / 0.0", double(f64::INFINITY)),
        ("-9223372036854775808", int(i64::MIN)),
        ("abs(-9223372036854775808)", int(i64::MIN)),
        ("- - 3", int(3)),
        ("2 - -3", int(5)),
        ("~ 1 + 1", int(!2)),
        ("~1 | 4", int(!1 | 4)),
        ("2 * ~ 1 + 3", int(2 * !4)),
        ("6 & 3 | 8 # 1", int((6 & 3 | 8) ^ 1)),
        ("1 << 64", int(1)),
        ("-8 >> 1", int(-4)),
        ("1 << 2 + 1", int(8)),
        ("1 < 2", boolean(true)),
        ("1 > 2.5", boolean(false)),
        ("2 >= 2 and 2 <= 2 and 2 <> 3 and 2 != 3 and 2 = 2.0", boolean(true)),
        ("not 1 = 2", boolean(true)),
        ("true or false and false", boolean(true)),
        ("true or 1 / 0 = 1", boolean(true)),
        ("false and 1 / 0 = 1", boolean(false)),
        ("null and false", Value::Null),
        ("null or true", Value::Null),
        ("false or null", Value::Null),
        ("not null", Value::Null),
        ("not int(null)", Value::Null),
        ("null and 1", Value::Null),
        ("false and 1", boolean(false)),
        ("1 is true", boolean(false)),
        ("1 = 1 is true", boolean(true)),
        ("null is null", boolean(true)),
        (":n is not null", boolean(false)),
        (":i notnull and :n isnull", boolean(true)),
        ("1 < 2 is null isnull is not null and not 1 is null is true", boolean(true)),
        ("1 + null", Value::Null),
    ] {
        assert_eq!(evaluated(expression), Ok(value), "{expression}");
    }
}

#[test]
fn functions_have_the_values_of_pgbench() {
    let int = Value::Int;
    let double = Value::Double;
    for (expression, value) in [
        ("case when 1 > 2 then 3 end", Value::Null),
        ("case when null then 1 when 0 then 2 when 0.5 then 3 else 4 end", int(3)),
        ("CASE WHEN FALSE THEN 1 / 0 ELSE 5 END", int(5)),
        ("abs(-2.5)", double(2.5)),
        ("least(3, 1, 2)", int(1)),
        ("greatest(3, 1.5, 4)", double(4.0)),
        ("least(1, null)", Value::Null),
        ("int(2.5) * 10 + int(3.5)", int(24)),
        ("int(-2.5)", int(-2)),
        ("double(3)", double(3.0)),
        ("sqrt(16)", double(4.0)),
        ("power(2, 3)", double(8.0)),
        ("ln(exp(1))", double(1.0)),
        ("pi()", double(std::f64::consts::PI)),
        ("debug(5)", int(5)),
        (":i + :d", double(9.5)),
        (":text", double(16.0)),
        (".5 + 5. + 1e2", double(105.5)),
        ("hash(10)", int(-5_817_877_081_768_721_676)),
        ("hash_fnv1a(10, 5432)", int(-7_793_829_335_365_542_153)),
        ("permute(9223372036854775796, 9223372036854775797)", int(520_382_784_483_822_430)),
        ("random(10, 19) * 1000 + random_exponential(100, 199, 10)", int(17_104)),
        // The right side of > is evaluated first.
        ("case when random_exponential(100, 199, 10) > random(10, 19) then 1 end", int(1)),
    ] {
        assert_eq!(evaluated(expression), Ok(value), "{expression}");
    }
    assert!(matches!(evaluated("sqrt(-1)"), Ok(Value::Double(value)) if value.is_nan()));
}

#[test]
fn an_expression_without_a_value_is_an_error() {
    use EvaluateError as E;
    for (expression, error) in [
        ("9223372036854775807 + 1", E::OutOfRange("int add")),
        ("-9223372036854775808 - 1", E::OutOfRange("int sub")),
        ("4611686018427387904 * 2", E::OutOfRange("int mul")),
        ("-9223372036854775808 / -1", E::OutOfRange("bigint div")),
        ("- (-9223372036854775808)", E::OutOfRange("int sub")),
        ("1 / 0", E::DivisionByZero),
        ("1 % 0", E::DivisionByZero),
        ("int(1e19)", E::DoubleOutOfRange(1e19)),
        ("int(9223372036854775807.0)", E::DoubleOutOfRange(9_223_372_036_854_775_807.0)),
        (":t + 1", E::Coerce(Type::Boolean, Type::Int)),
        (":t + 1.5", E::Coerce(Type::Boolean, Type::Double)),
        (":t = :t", E::Coerce(Type::Boolean, Type::Int)),
        ("not :i", E::Coerce(Type::Int, Type::Boolean)),
        (":t and :d", E::Coerce(Type::Double, Type::Boolean)),
        ("random(2, 1)", E::EmptyRange),
        ("random(-1, 9223372036854775807)", E::RangeTooLarge),
        ("random(0, 9223372036854775807)", E::RangeTooLarge),
        ("permute(1, 0)", E::PermuteSize),
    ] {
        assert_eq!(evaluated(expression), Err(error), "{expression}");
    }
    for (expression, function) in [
        ("random_exponential(1, 2, 0)", "exponential"),
        ("random_gaussian(1, 2, 1.9)", "gaussian"),
        ("random_zipfian(1, 2, 1)", "zipfian"),
        ("random_exponential(1, 2, 0.0 / 0)", "exponential"),
    ] {
        let error = evaluated(expression);
        assert!(
            matches!(error, Err(E::Parameter { function: actual, .. }) if actual == function),
            "{error:?}"
        );
    }
    assert!(matches!(evaluated(":bad"), Err(E::Malformed(_))));
    assert!(matches!(evaluated(":empty"), Err(E::Malformed(_))));
    assert!(matches!(evaluated(":other"), Err(E::Undefined(_))));
}

#[test]
fn a_command_may_have_blanks_before_its_name() {
    let (script, names) = parsed("\\ set x 1\n\\\t if :x\n\\endif");
    assert_eq!(script.commands.len(), 3);
    assert!(matches!(script.commands[0].action, Action::Set(slot, _) if names.name(slot) == "x"));
    let many = format!("\\set x 1{}", " + 1".repeat(200));
    assert!(parse("s", &many, &mut Names::default()).is_ok());
}

#[test]
fn a_script_is_a_list_of_commands() {
    let (script, names) = parsed(
        "-- a comment\n\\set aid random(1, \\\n  100 * :scale) \nBEGIN; update t set a = :aid\n  where b = ':aid'; \
         select 1 \\; select 2 \\aset p_\nselect 3; \\gset\n\\sleep 5ms\n\\sleep :aid us\n\\sleep 2\n\
         \\setshell x expr 1 + :aid ::b\n\\STARTPIPELINE\n\\syncpipeline\n\\endpipeline\nend",
    );
    let titles: Vec<_> =
        script.commands.iter().map(|command| (command.line, command.title.as_str())).collect();
    assert_eq!(
        titles,
        [
            (2, "\\set aid random(1, \\"),
            (4, "BEGIN;"),
            (4, "update t set a = :aid"),
            (5, "select 1 ; select 2"),
            (6, "select 3;"),
            (7, "\\sleep 5ms"),
            (8, "\\sleep :aid us"),
            (9, "\\sleep 2"),
            (10, "\\setshell x expr 1 + :aid ::b"),
            (11, "\\STARTPIPELINE"),
            (12, "\\syncpipeline"),
            (13, "\\endpipeline"),
            (14, "end"),
        ]
    );
    let actions: Vec<_> = script.commands.into_iter().map(|command| command.action).collect();
    let Action::Sql(update) = &actions[2] else { panic!() };
    assert_eq!(
        update.references.iter().map(|reference| reference.is_quoted).collect::<Vec<_>>(),
        [false, true]
    );
    assert!(
        matches!(&actions[3], Action::Sql(Statement { statements: 2, rows: Rows::Each(prefix), .. }) if prefix == "p_")
    );
    assert!(
        matches!(&actions[4], Action::Sql(Statement { rows: Rows::Last(prefix), .. }) if prefix.is_empty())
    );
    assert_eq!(actions[5], Action::Sleep(Operand::Int(5), Unit::Milliseconds));
    assert_eq!(
        actions[6],
        Action::Sleep(Operand::Variable(names.find("aid").unwrap()), Unit::Microseconds)
    );
    let word = |text: &str| Word::Text(text.to_owned());
    let aid = Word::Variable(names.find("aid").unwrap());
    let words = vec![word("expr"), word("1"), word("+"), aid, word(":b")];
    assert_eq!(actions[8], Action::SetShell(names.find("x").unwrap(), words));
}

#[test]
fn variables_are_replaced_for_each_protocol() {
    let (script, names) =
        parsed("select :a, ':a', :b::int, x[1:2], :::a, :a, ':missing', $$:a$$ -- :a\n, :missing;");
    let Action::Sql(statement) = &script.commands[0].action else { panic!() };
    let mut variables = Variables::new(&names);
    variables.set(names.find("a").unwrap(), Value::Int(-1));
    variables.set_text(names.find("b").unwrap(), b"it's");
    let mut out = Vec::new();
    statement.append_simple(&variables, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "select -1, '-1', it's::int, x[1:2], :::a, -1, ':missing', $$-1$$ -- -1\n, :missing;"
    );
    let given = ["a", "b"].map(|name| names.find(name).unwrap());
    for (is_simple, text, parameters) in [
        (
            false,
            "select $1, ':a', $2::int, x[1:2], :::a, $3, ':missing', $$:a$$ -- :a\n, $4;",
            vec!["a", "b", "a", "missing"],
        ),
        (
            true,
            "select $1, ':a', $2::int, x[1:2], :::a, $3, ':missing', $$:a$$ -- :a\n, :missing;",
            vec!["a", "b", "a"],
        ),
    ] {
        let scope = Scope::new(std::slice::from_ref(&script), &names, &given, is_simple);
        assert_eq!(statement.with_parameters(scope.parameters(statement)), text);
        let used = scope.parameters(statement).map(|reference| names.name(reference.slot));
        assert_eq!(used.collect::<Vec<_>>(), parameters);
    }
}

#[test]
fn conditions_know_where_to_continue() {
    let (script, _) =
        parsed("\\if :a\n1;\n\\elif :b\n\\if :c\n2;\n\\endif\n\\else\n3;\n\\endif\n4;");
    let targets: Vec<_> = script
        .commands
        .iter()
        .map(|command| match command.action {
            Action::If { otherwise, .. } => ("if", otherwise, 0),
            Action::ElseIf { otherwise, end, .. } => ("elif", otherwise, end),
            Action::Else { end } => ("else", 0, end),
            Action::EndIf => ("endif", 0, 0),
            _ => ("", 0, 0),
        })
        .collect();
    assert_eq!(
        targets,
        [
            ("if", 2, 0),
            ("", 0, 0),
            ("elif", 7, 8),
            ("if", 5, 0),
            ("", 0, 0),
            ("endif", 0, 0),
            ("else", 0, 8),
            ("", 0, 0),
            ("endif", 0, 0),
            ("", 0, 0),
        ]
    );
}

#[test]
fn all_errors_are_reported_with_their_positions() {
    let reported = errors(
        "\\set x 1 +\n\\set y foo(1)\nselect 1; \\nope\n\\else\n\\if true\n\\else 1\n\\elif true\n\\set 1a 2\n\
         \\sleep 1.5\n\\sleep 1 h\n\\gset",
    );
    let expected = [
        (1, 11, "syntax error in command \"set\""),
        (2, 8, "unexpected function name (foo) in command \"set\""),
        (3, 11, "invalid command in command \"nope\""),
        (4, 1, "\\else without matching \\if"),
        (5, 1, "\\if without matching \\endif"),
        (6, 7, "unexpected argument in command \"else\""),
        (7, 1, "\\elif after \\else"),
        (8, 6, "invalid variable name: \"1a\""),
        (9, 9, "unrecognized time unit \".5\": must be us, ms or s"),
        (10, 10, "unrecognized time unit \"h\": must be us, ms or s"),
        (11, 1, "\\gset must follow an SQL command"),
    ];
    assert_eq!(
        reported,
        expected.map(|(line, column, message)| (line, column, message.to_owned()))
    );
}

#[test]
fn each_mistake_is_found() {
    let chain = format!("\\set x 1{}", "+1".repeat(1000));
    let nested = format!("\\set x {}1", "(".repeat(300));
    for (script, line, column, message) in [
        ("", 1, 1, "empty command list for script"),
        ("-- nothing", 1, 1, "empty command list for script"),
        ("select 'a;\n1", 1, 8, "the string is not closed"),
        ("select (1;\nselect 2;", 1, 8, "the parenthesis is not closed"),
        ("\\set", 1, 5, "missing argument in command \"set\""),
        ("\\set x", 1, 7, "syntax error in command \"set\""),
        ("\\set x 1 2", 1, 10, "syntax error in command \"set\""),
        ("\\set x 9223372036854775808", 1, 8, "bigint constant overflow in command \"set\""),
        ("\\set x 99999999999999999999", 1, 8, "bigint constant overflow in command \"set\""),
        ("\\set x 1e999", 1, 8, "double constant overflow in command \"set\""),
        ("\\set x 1 < 2 < 3", 1, 14, "comparisons cannot be chained in command \"set\""),
        ("\\set x 1;", 1, 9, "unexpected character (;) in command \"set\""),
        ("\\set x : + 1", 1, 8, "\":\" without the name of a variable in command \"set\""),
        ("\\set x 1 and true", 1, 10, "cannot coerce int to boolean in command \"set\""),
        ("\\set x 1 + true", 1, 10, "cannot coerce boolean to a number in command \"set\""),
        ("\\set x not 1.5", 1, 8, "cannot coerce double to boolean in command \"set\""),
        ("\\set x -(1 = 2)", 1, 8, "cannot coerce boolean to a number in command \"set\""),
        ("\\set x abs(true)", 1, 12, "cannot coerce boolean to a number in command \"set\""),
        ("\\set x abs()", 1, 8, "unexpected number of arguments (abs) in command \"set\""),
        ("\\set x least()", 1, 8, "at least one argument expected (least) in command \"set\""),
        ("\\set x HASH(1, 2, 3)", 1, 8, "unexpected number of arguments (hash) in command \"set\""),
        ("\\set x permute(1)", 1, 8, "unexpected number of arguments (permute) in command \"set\""),
        ("\\set x pi(1)", 1, 8, "unexpected number of arguments (pi) in command \"set\""),
        ("\\set x random(1)", 1, 8, "unexpected number of arguments (random) in command \"set\""),
        ("\\set x abs", 1, 11, "syntax error in command \"set\""),
        ("\\set x case end", 1, 13, "syntax error in command \"set\""),
        ("\\set x case when 1 then 2", 1, 26, "syntax error in command \"set\""),
        ("\\set x 1 is 2", 1, 13, "syntax error in command \"set\""),
        ("\\set x 'a'", 1, 8, "unexpected character (') in command \"set\""),
        (&chain, 1, 2008, "more than 1000 operators and operands in command \"set\""),
        (&nested, 1, 208, "more than 200 nested expressions in command \"set\""),
    ] {
        assert_error(script, (line, column, message));
    }
}

fn assert_error(script: &str, expected: (usize, usize, &str)) {
    let text: String = script.chars().take(60).collect();
    let reported = errors(script);
    assert_eq!(reported.len(), 1, "{text}: {reported:?}");
    assert_eq!((reported[0].0, reported[0].1, reported[0].2.as_str()), expected, "{text}");
}

#[test]
fn each_mistake_in_a_command_is_found() {
    let words = format!("\\shell a {}", "b ".repeat(256));
    for (script, line, column, message) in [
        ("\\if\n\\endif", 1, 4, "syntax error in command \"if\""),
        ("\\endif", 1, 1, "\\endif without matching \\if"),
        ("\\elif true", 1, 1, "\\elif without matching \\if"),
        ("\\if true\n\\else\n\\else\n\\endif", 3, 1, "\\else after \\else"),
        ("\\if true\n\\endif true", 2, 8, "unexpected argument in command \"endif\""),
        ("select 1 \\gset a b", 1, 18, "too many arguments in command \"gset\""),
        ("select 1 \\gset a \n\\gset", 2, 1, "\\gset must follow an SQL command"),
        ("select 1 \\aset 1", 1, 16, "invalid prefix of variables: \"1\""),
        ("\\sleep", 1, 7, "missing argument in command \"sleep\""),
        ("\\sleep :1", 1, 8, "invalid variable name: \"1\""),
        ("\\sleep 1ms ms", 1, 12, "the time has a unit already"),
        ("\\sleep 9223372036854775807 s", 1, 8, "the time is too long"),
        ("\\sleep x", 1, 8, "invalid time \"x\": expected an integer"),
        ("\\shell", 1, 7, "missing command in command \"shell\""),
        ("\\shell a :x.log", 1, 10, "invalid variable name: \"x.log\""),
        ("\\ nope", 1, 1, "invalid command in command \"nope\""),
        ("select (1 \\sleep 1", 1, 8, "the parenthesis is not closed"),
        ("select :{?x};", 1, 8, "\":{?name}\" is not supported: pgbench replaces it by FALSE"),
        ("\\if true\nselect 'a", 2, 8, "the string is not closed"),
        ("\\set x 1e-400", 1, 8, "double constant overflow in command \"set\""),
        ("\\set x -09223372036854775808", 1, 9, "bigint constant overflow in command \"set\""),
        ("\\setshell x", 1, 12, "missing argument in command \"setshell\""),
        ("\\startpipeline x", 1, 16, "unexpected argument in command \"startpipeline\""),
        (&words, 1, 518, "too many arguments in command \"shell\""),
    ] {
        assert_error(script, (line, column, message));
    }
}

#[test]
fn finds_variables_that_nothing_defines() {
    let mut names = Names::default();
    let given = names.slot("given");
    let texts = [
        "\\set a :given + :b\nselect :a, :c, ':d', :e::int;\n\\sleep :f\n\\shell echo :g",
        "select 1 as c \\gset c\n\\set b 1",
    ];
    let scripts = texts.map(|text| parse("s", text, &mut names).unwrap());
    let undefined = |scripts: &[Script], is_simple| {
        let scope = Scope::new(scripts, &names, &[given], is_simple);
        let errors = scripts.iter().flat_map(|script| scope.errors(script));
        errors.map(|error| (error.line, error.column, error.message)).collect::<Vec<_>>()
    };
    let missing = |line, column, name| (line, column, format!("undefined variable \"{name}\""));
    assert_eq!(
        undefined(&scripts, false),
        [missing(2, 22, "e"), missing(3, 8, "f"), missing(4, 13, "g")]
    );
    assert_eq!(undefined(&scripts, true), [missing(3, 8, "f"), missing(4, 13, "g")]);
    assert_eq!(undefined(&scripts[..1], true)[0], missing(1, 17, "b"));
    assert_eq!(undefined(&scripts[1..], false), []);
}

#[test]
fn late_errors_are_found_when_they_are_evaluated() {
    let mut names = Names::default();
    let text = "\\if false\n\\set x 1 + true\n\\set y :nothing\nselect :nothing;\n\\endif";
    let script = [parse("s", text, &mut names).unwrap()];
    let scope = Scope::new(&script, &names, &[], false);
    assert_eq!(scope.errors(&script[0]).len(), 3);
    assert_eq!(scope.with_late_errors(true).errors(&script[0]), []);
    // A syntax error is reported by the parser all the same.
    assert!(parse("s", "\\set x 1 +", &mut names).is_err());
}

#[test]
fn variables_in_quotes_and_behind_names_are_only_replaced_by_the_simple_protocol() {
    let mut names = Names::default();
    let given = names.slot("a");
    let text = "select ':a', E'\\':a', \":a\", $$:a$$, '12:30', ':b' -- ':a'\n/* :a */;\nselect * from t_:a, x[1:a], (:a), :a::int;";
    let script = [parse("s", text, &mut names).unwrap()];
    let columns = |diagnostics: Vec<Diagnostic>| -> Vec<_> {
        diagnostics.iter().map(|diagnostic| (diagnostic.line, diagnostic.column)).collect()
    };
    let scope = Scope::new(&script, &names, &[given], false);
    let warnings = scope.warnings(&script[0]);
    assert!(warnings[0].message.starts_with("the variable \"a\" is not replaced in quotes"));
    assert_eq!(columns(warnings), [(1, 9), (1, 18), (1, 24), (1, 31)]);
    let errors = scope.errors(&script[0]);
    assert!(errors[0].message.starts_with("the variable \"a\" follows a name"), "{:?}", errors[0]);
    assert_eq!(columns(errors), [(3, 17), (3, 24)]);
    let simple = Scope::new(&script, &names, &[given], true);
    assert_eq!((simple.warnings(&script[0]), simple.errors(&script[0])), (Vec::new(), Vec::new()));
}

#[test]
fn a_statement_has_at_most_255_parameters() {
    let mut names = Names::default();
    let slot = names.slot("a");
    let text = format!("\n select {} ':a';", ":a,".repeat(256));
    let script = [parse("s", &text, &mut names).unwrap()];
    let errors = Scope::new(&script, &names, &[slot], false).errors(&script[0]);
    assert_eq!((errors[0].line, errors[0].column, errors.len()), (2, 2, 1));
    assert_eq!(errors[0].source.chars().count(), 160);
    assert_eq!(Scope::new(&script, &names, &[slot], true).errors(&script[0]), []);
}

#[test]
fn a_long_line_with_many_errors_is_no_problem() {
    let mut names = Names::default();
    let script = [parse("s", &"select :a;".repeat(100_000), &mut names).unwrap()];
    let errors = Scope::new(&script, &names, &[], false).errors(&script[0]);
    assert_eq!(errors.len(), 20);
    assert_eq!((errors[1].line, errors[1].column), (1, 18));
}

#[test]
fn an_error_shows_its_line_with_a_caret() {
    let error =
        parse("dir/a.sql", "select 1;\n\t\\set é foo(1)\r\n", &mut Names::default()).unwrap_err();
    assert_eq!(
        error[0].to_string(),
        "dir/a.sql:2:9: unexpected function name (foo) in command \"set\"\n   \\set é foo(1)\n          ^ error found here"
    );
}

#[test]
fn a_backslash_in_sql_only_ends_the_command() {
    let (script, _) = parsed("select 1 \\\n + 2;");
    let titles: Vec<_> = script.commands.iter().map(|command| command.title.as_str()).collect();
    assert_eq!(titles, ["select 1", "+ 2;"]);
}

fn arithmetic() -> impl Strategy<Value = String> {
    let leaf =
        prop::sample::select(vec!["1", "7", "9223372036854775807", ":a", ":b", "1.5", "null"]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 2, |inner| {
        let operation = prop::sample::select(vec!["+", "-", "*", "/", "<", "random"]);
        (operation, inner.clone(), inner).prop_map(|(operation, first, second)| match operation {
            "random" => format!("random({first}, {second})"),
            _ => format!("({first} {operation} {second})"),
        })
    })
}

proptest! {
    #[test]
    fn expressions_of_integers_have_the_value_of_the_general_case(text in arithmetic()) {
        let mut names = Names::default();
        let (a, b) = (names.slot("a"), names.slot("b"));
        let Ok(script) = parse("a", &format!("\\set x {text}\n"), &mut names) else {
            return Ok(());
        };
        let Action::Set(_, expression) = &script.commands[0].action else { panic!("no \\set") };
        let mut variables = Variables::new(&names);
        variables.set(a, Value::Int(-3));
        variables.set_text(b, b"12");
        let mut random = [Random::new(5), Random::new(5)];
        let [first, second] = &mut random;
        let variables = &mut variables;
        let specialized = Context { variables, random: first, debug: &mut |_| {} }.evaluate(expression);
        let general = Context { variables, random: second, debug: &mut |_| {} }.value(expression);
        // NaN is not equal to itself.
        prop_assert_eq!(format!("{specialized:?}"), format!("{general:?}"));
        prop_assert_eq!(&random[0], &random[1]);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,200}") {
        let _ = parse("a", &text, &mut Names::default());
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse("a", &String::from_utf8_lossy(&bytes), &mut Names::default());
    }

    #[test]
    fn any_expression_has_a_value_or_an_error(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "1", "-1", "0", "9223372036854775807", "-9223372036854775808", "1.5", "1e300", "null", "true", ":a", ":b",
                "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "#", "~", "=", "<", "and", "or", "not", "is null", "(", ")",
                ",", "abs(", "int(", "random(", "random_zipfian(", "random_gaussian(", "permute(", "mod(", "least(",
                "hash(", "pow(", "sqrt(", "ln(", "exp(", "case when", "then", "else", "end",
            ]),
            1..14,
        ),
    ) {
        let mut names = Names::default();
        let (a, b) = (names.slot("a"), names.slot("b"));
        let text = format!("\\set x {}\n", pieces.join(" "));
        let Ok(script) = parse("a", &text, &mut names) else {
            return Ok(());
        };
        let mut variables = Variables::new(&names);
        variables.set(a, Value::Int(i64::MIN));
        variables.set_text(b, b" 7");
        let mut random = Random::new(5);
        for command in &script.commands {
            if let Action::Set(_, expression) = &command.action {
                let (variables, random) = (&mut variables, &mut random);
                let _ = Context { variables, random, debug: &mut |_| {} }.evaluate(expression);
            }
        }
    }

    #[test]
    fn any_pieces_of_scripts_are_parsed_or_refused(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "\\", "set", "\\set x ", "\\if ", "\\elif ", "\\else", "\\endif", "\n", "\r\n", " ", ";", ":", "::", ":a",
                "'", "\"", "$", "$a$", "/*", "*/", "--", "(", ")", "E'", "begin", "end", "create function", "\\gset",
                "\\aset p", "\\sleep ", "5ms", "\\;", "\\:", "1", "9223372036854775808", "1.5e3", "random(", ",", "and",
                "not", "is", "null", "case when", "then", "<", "-", "~", "é", "\0", "\\shell ", "\\startpipeline",
            ]),
            0..40,
        ),
    ) {
        let text = pieces.concat();
        if let Err(errors) = parse("a", &text, &mut Names::default()) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                prop_assert!(error.caret <= error.source.chars().count() + 1, "{error}");
                prop_assert!(error.line >= 1 && error.caret < error.column, "{error}");
            }
        }
    }
}
