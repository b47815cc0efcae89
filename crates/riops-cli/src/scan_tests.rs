use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn read(line: &str) -> CommandLine {
    CommandLine::read(line.split(' ').map(OsString::from).collect())
}

#[test]
fn reads_every_form_of_an_option() {
    for (typed, option, value) in [
        ("-d x", "database", "x"),
        ("-dx", "database", "x"),
        ("-d=x", "database", "x"),
        ("-d=", "database", ""),
        ("--database x", "database", "x"),
        ("--database=x=y", "database", "x=y"),
        ("--database=", "database", ""),
        ("-nd x", "database", "x"),
        ("-qndx", "non-transactional", "true"),
        ("-nd=x", "non-transactional", "true"),
        ("-d -", "database", "-"),
        ("-d run", "database", "run"),
        ("-d -3", "database", "-3"),
        ("--threads 4 -c5 --threads=6", "sessions", "6"),
        ("--report_interval=1_0", "interval", "1_0"),
        ("--no_store --label a_b", "label", "a_b"),
        ("--print-histogram --print-histogram=log", "print-histogram", "log"),
        ("--config a -q --config b", "config", "b"),
    ] {
        let line = read(&format!("riops run load {typed}"));
        assert_eq!(line.value(option).as_deref(), Some(OsStr::new(value)), "{typed}");
        assert_eq!(line.subcommands(), ["run", "load"], "{typed}");
    }
    assert_eq!(read("riops generate csv -t4").value("sessions"), Some("4".into()));
    assert_eq!(read("riops run load -c5").value("database"), None);
}

#[test]
fn finds_subcommands_among_options_by_name_and_alias() {
    for (line, subcommands) in [
        ("riops", &[][..]),
        ("riops --config run -q verify point", &["verify", "load"]),
        ("riops run --config oltp rows", &["run", "rows"]),
        ("riops run oltp -- rows", &["run", "oltp"]),
        ("riops report run", &["report"]),
        ("riops server psql -- run", &["server", "psql"]),
        ("riops run rows --sesions 3 oltp", &["run", "rows"]),
    ] {
        assert_eq!(read(line).subcommands(), subcommands, "{line}");
    }
}

#[test]
fn reads_up_to_the_first_argument_that_clap_rejects() {
    for rejected in [
        "--color",
        "--color=blue",
        "-x",
        "-qx",
        "--quiet=yes",
        "--database",
        "-d --label x",
        "-d -q",
        "-d --",
        "stray",
        "-- stray",
        "--no-store --no-store",
    ] {
        let words = format!("riops run rows --seed x --output json {rejected}");
        let line = read(&words);
        assert!(!line.is_accepted(), "{rejected}");
        assert_eq!(line.value("seed"), Some("x".into()), "{rejected}");
        assert_eq!(line.value("output"), Some("json".into()), "{rejected}");
        let arguments = line.arguments().iter().map(|word| word.to_str().unwrap());
        assert_eq!(arguments.collect::<Vec<_>>().join(" "), words);
    }
    assert!(!read("riops columns").is_accepted());
    assert!(!read("riops run rows run oltp").is_accepted());
}

#[test]
fn help_is_no_error_and_has_a_short_form() {
    for (line, is_short) in [
        ("riops run rows -h", true),
        ("riops run -qh rows", true),
        ("riops run rows --help", false),
        ("riops run rows", false),
    ] {
        assert_eq!(read(line).asks_for_short_help(), is_short, "{line}");
        assert!(read(line).is_accepted(), "{line}");
    }
}

#[test]
fn replaces_underscores_only_in_names_of_options() {
    let typed = "riops run point --warmup_time=1_0 --label a_b --col_or --table_name t_1 -- --c_d";
    let expected =
        "riops run point --warmup-time=1_0 --label a_b --col_or --table-name t_1 -- --c_d";
    let line = read(typed);
    let words: Vec<_> = line.arguments().iter().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(words.join(" "), expected);
}

#[test]
fn options_accept_no_value_with_dashes_as_a_separate_argument() {
    fn check(command: &Command) {
        for arg in command.get_arguments() {
            assert!(!arg.is_allow_hyphen_values_set() && !arg.is_trailing_var_arg_set(), "{arg}");
        }
        command.get_subcommands().for_each(check);
    }
    check(crate::args::built());
}

#[test]
fn arguments_with_dashes_stay_arguments() {
    let line = read("riops compare --store s -- -x y");
    let rest = line.without(|long| long == "store");
    assert_eq!(rest, ["riops", "compare", "--", "-x", "y"].map(OsString::from));
    let line = read("riops -q sweep oltp --axis a=1 read-only");
    let rest = line.without(|long| long == "axis");
    let words = ["riops", "sweep", "oltp", "read-only", "--quiet"];
    assert_eq!(rest, words.map(OsString::from));
}

/// Returns the arguments for an option and its value, in one of the forms that clap accepts.
fn typed_in_form(arg: &Arg, value: &str, form: usize) -> Vec<String> {
    let mut longs = vec![arg.get_long().unwrap().to_owned()];
    longs.extend(arg.get_all_aliases().into_iter().flatten().map(str::to_owned));
    longs.extend(longs.clone().iter().map(|name| name.replace('-', "_")));
    let mut names: Vec<_> = longs.iter().map(|name| (format!("--{name}"), "=")).collect();
    let shorts = arg.get_all_short_aliases().into_iter().flatten();
    for short in arg.get_short().into_iter().chain(shorts) {
        names.extend([
            (format!("-{short}"), ""),
            (format!("-{short}"), "="),
            (format!("-q{short}"), ""),
        ]);
    }
    let (name, equals) = names[form / 2 % names.len()].clone();
    if !arg.get_action().takes_values() {
        vec![name]
    } else if form.is_multiple_of(2) || arg.is_require_equals_set() {
        vec![format!("{name}{equals}{value}")]
    } else {
        vec![name, value.to_owned()]
    }
}

/// Collects the commands that run without a subcommand, with their paths and definitions.
fn leaves(command: &Command, path: &[String], collected: &mut Vec<(Vec<String>, Command)>) {
    if !command.is_subcommand_required_set() {
        collected.push((path.to_vec(), command.clone()));
    }
    for subcommand in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        for name in [subcommand.get_name()].into_iter().chain(subcommand.get_all_aliases()) {
            leaves(subcommand, &[path, &[name.to_owned()]].concat(), collected);
        }
    }
}

fn value() -> impl Strategy<Value = String> {
    let words = select(&["run", "oltp", "1", "-3", "a=b", "postgresql://u:p@h/d", "", "x y", "-q"]);
    prop_oneof![words.prop_map(str::to_owned), "[a-z0-9=_:-]{0,6}"]
}

/// Command lines with `--config` before the subcommands and options of the command after them.
fn command_line() -> impl Strategy<Value = Vec<OsString>> {
    let mut command = crate::args::command().clone();
    command.build();
    let mut commands = Vec::new();
    leaves(&command, &[], &mut commands);
    let options = prop::collection::vec((any::<prop::sample::Index>(), value(), 0..40usize), 0..5);
    let before = prop::option::of((value(), 0..40usize));
    (select(commands), options, before).prop_map(move |((path, leaf), options, before)| {
        let mut words = vec!["riops".to_owned()];
        words.extend(before.iter().flat_map(|(value, form)| {
            typed_in_form(
                command.get_arguments().find(|arg| arg.get_long() == Some("config")).unwrap(),
                value,
                *form,
            )
        }));
        words.extend(path);
        let args: Vec<_> =
            leaf.get_arguments().filter(|arg| arg.get_long() != Some("help")).collect();
        let args: Vec<_> = args.into_iter().filter(|arg| !arg.is_positional()).collect();
        // The second option is always the database, if the command has one.
        let database = leaf.get_arguments().find(|arg| arg.get_long() == Some("database"));
        for (position, (index, value, form)) in options.into_iter().enumerate() {
            let arg =
                database.filter(|_| position == 1).unwrap_or_else(|| args[index.index(args.len())]);
            words.extend(typed_in_form(arg, &value, form));
        }
        words.into_iter().map(OsString::from).collect()
    })
}

/// Everything that was typed: subcommands, arguments and options with their values.
fn everything(line: &CommandLine) -> Vec<(String, Vec<OsString>)> {
    let mut collected = Vec::new();
    for (command, matches) in line.levels() {
        collected.push((command.get_name().to_owned(), Vec::new()));
        for arg in command.get_arguments().filter(|arg| !arg.is_global_set()) {
            let values = typed(arg, matches).into_iter().map(|(_, value)| value.to_owned());
            collected.push((arg.get_id().to_string(), values.collect()));
        }
    }
    for global in ["config", "quiet", "help"] {
        collected.push((global.to_owned(), line.value(global).into_iter().collect()));
    }
    collected
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_command_line_without_an_option_is_the_same_otherwise(arguments in command_line()) {
        let line = CommandLine::read(arguments);
        prop_assume!(line.is_accepted());
        let same = CommandLine::read(line.without(|_| false));
        prop_assert_eq!(everything(&same), everything(&line));
        let rest = CommandLine::read(line.without(|long| long == "database"));
        prop_assert!(rest.is_accepted(), "{:?}", rest);
        let mut expected = everything(&line);
        expected.iter_mut().filter(|(id, _)| id == "database").for_each(|(_, values)| values.clear());
        prop_assert_eq!(everything(&rest), expected);
    }
}
