use std::os::unix::ffi::OsStringExt;

use clap::error::ErrorKind;
use clap::{ArgMatches, value_parser};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn scan(line: &str) -> CommandLine {
    let words = line.split(' ').map(OsString::from).collect();
    CommandLine::scan(crate::args::built(), words)
}

/// Returns the options of a line as `name=value` or `name`, with the index of their argument.
fn options(line: &CommandLine) -> Vec<(usize, String)> {
    let text = |option: &TypedOption| match &option.value {
        Some(value) => format!("{}={}", option.long, value.to_str().unwrap()),
        None => option.long.clone(),
    };
    line.options.iter().map(|option| (option.position, text(option))).collect()
}

#[test]
fn reads_every_form_of_an_option() {
    let cases: [(&str, &[(usize, &str)]); 17] = [
        ("-d x", &[(3, "database=x")]),
        ("-dx", &[(3, "database=x")]),
        ("-d=x", &[(3, "database=x")]),
        ("-d=", &[(3, "database=")]),
        ("--database x", &[(3, "database=x")]),
        ("--database=x=y", &[(3, "database=x=y")]),
        ("--database=", &[(3, "database=")]),
        ("-nd x", &[(3, "non-transactional"), (3, "database=x")]),
        ("-qndx", &[(3, "quiet"), (3, "non-transactional"), (3, "database=x")]),
        ("-nd=x", &[(3, "non-transactional"), (3, "database=x")]),
        ("-d -", &[(3, "database=-")]),
        ("-d run", &[(3, "database=run")]),
        ("-d -3", &[(3, "database=-3")]),
        ("--threads 4 -c5", &[(3, "sessions=4"), (5, "sessions=5")]),
        ("--report_interval=1_0", &[(3, "interval=1_0")]),
        ("--no_store --label a_b", &[(3, "no-store"), (4, "label=a_b")]),
        (
            "--print-histogram --print-histogram=log",
            &[(3, "print-histogram"), (4, "print-histogram=log")],
        ),
    ];
    for (typed, expected) in cases {
        let line = scan(&format!("riops run load {typed}"));
        let expected =
            expected.iter().map(|(position, text)| (*position, (*text).to_owned())).collect();
        assert_eq!((line.is_complete(), options(&line)), (true, expected), "{typed}");
        assert_eq!(line.subcommands(), ["run", "load"], "{typed}");
    }
    assert_eq!(options(&scan("riops generate csv -t4")), [(3, "sessions=4".to_owned())]);
}

#[test]
fn finds_subcommands_among_options_by_name_and_alias() {
    for (line, subcommands) in [
        ("riops", &[][..]),
        ("riops --config run -q verify point", &["verify", "load"]),
        ("riops run --config oltp rows", &["run", "rows"]),
        ("riops run oltp -- rows", &["run", "oltp"]),
        ("riops report run", &["report"]),
        ("riops help run rows", &["help", "run", "rows"]),
        ("riops server psql -- run", &["server", "psql"]),
    ] {
        let line = scan(line);
        assert_eq!(line.subcommands(), subcommands);
        assert!(line.is_complete());
    }
}

#[test]
fn stops_at_the_first_argument_that_clap_rejects() {
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
        "--",
    ] {
        let words = format!("riops run rows --seed 1 {rejected}");
        let line = scan(&words);
        assert_eq!(line.is_complete(), rejected == "--", "{rejected}");
        let arguments = line.arguments().iter().map(|word| word.to_str().unwrap());
        assert_eq!(arguments.collect::<Vec<_>>().join(" "), words);
        assert_eq!(options(&line).first(), Some(&(3, "seed=1".to_owned())));
    }
    assert!(!scan("riops columns").is_complete());
    assert!(!scan("riops run rows run oltp").is_complete());
}

#[test]
fn replaces_underscores_only_in_option_names() {
    let typed = "riops run load --warmup_time=1_0 --label a_b --table_name t_1 -- --c_d";
    let read = "riops run load --warmup_time=1_0 --label a_b --table-name t_1 -- --c_d";
    let words = |line: &CommandLine| -> Vec<String> {
        line.arguments().iter().map(|word| word.to_str().unwrap().to_owned()).collect()
    };
    // `load` has no --warmup: the scan ends there, and the rest of the line is not changed.
    assert_eq!(words(&scan(typed)).join(" "), typed);
    let typed = typed.replace("run load", "run point");
    let read = read.replace("run load", "run point").replace("warmup_time", "warmup-time");
    assert_eq!(words(&scan(&typed)).join(" "), read);
}

#[test]
fn options_use_only_clap_features_that_the_scan_supports() {
    fn check(command: &Command) {
        assert!(!command.is_subcommand_precedence_over_arg_set());
        assert!(!command.is_args_conflicts_with_subcommands_set());
        assert!(!command.is_allow_external_subcommands_set());
        assert!(!command.is_allow_missing_positional_set());
        for arg in command.get_arguments() {
            assert!(!arg.is_allow_hyphen_values_set() && !arg.is_trailing_var_arg_set());
            assert!(arg.get_value_terminator().is_none(), "{arg}");
            assert!(arg.is_positional() || !takes_many(arg), "{arg}");
        }
        for subcommand in command.get_subcommands() {
            assert!(subcommand.get_long_flag().is_none());
            assert!(subcommand.get_short_flag().is_none());
            check(subcommand);
        }
    }
    check(crate::args::built());
}

/// Returns the command with all value parsers disabled, so that clap rejects only lines that it cannot split.
fn any_values(command: Command) -> Command {
    let names: Vec<_> =
        command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| {
        if arg.get_action().takes_values() {
            arg.value_parser(value_parser!(OsString))
        } else {
            arg
        }
    });
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, any_values))
}

/// The result of a parse: the subcommands, the values of `--database`, the last value of `--config`, and
/// `--quiet`.
type Found = (Vec<String>, Vec<OsString>, Option<OsString>, bool);

fn found_by_clap(matches: &ArgMatches) -> Found {
    let mut subcommands = Vec::new();
    let mut inner = matches;
    while let Some((name, next)) = inner.subcommand() {
        subcommands.push(name.to_owned());
        inner = next;
    }
    let values = |id| {
        let raw = inner.try_get_raw(id).ok().flatten();
        raw.into_iter().flatten().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    (subcommands, values("database"), values("config").pop(), inner.get_flag("quiet"))
}

fn found_by_scan(line: &CommandLine) -> Found {
    let values = |long| line.uses(long).filter_map(|option| option.value.clone());
    let subcommands = line.subcommands().into_iter().map(str::to_owned).collect();
    let config = values("config").last();
    (subcommands, values("database").collect(), config, line.uses("quiet").next().is_some())
}

fn assert_agrees_with_clap(arguments: Vec<OsString>) -> Result<(), TestCaseError> {
    let command = any_values(crate::args::command().clone());
    let typed = arguments.clone();
    let line = CommandLine::scan(crate::args::built(), arguments);
    prop_assert_eq!(typed.len(), line.arguments().len());
    let parsed = command.clone().try_get_matches_from(line.arguments());
    let found = match parsed.as_ref().map_err(clap::Error::kind) {
        Ok(matches) => found_by_clap(matches),
        Err(
            ErrorKind::UnknownArgument
            | ErrorKind::InvalidSubcommand
            | ErrorKind::InvalidValue
            | ErrorKind::NoEquals
            | ErrorKind::TooManyValues,
        ) => {
            prop_assert!(!line.is_complete(), "clap rejects {:?}", line);
            return Ok(());
        }
        Err(_) => return Ok(()),
    };
    prop_assert!(line.is_complete(), "clap accepts {:?}", line);
    prop_assert_eq!(found_by_scan(&line), found.clone());
    if let Some(option) = line.uses("database").next() {
        let rest = command.try_get_matches_from(line.without(option));
        let (subcommands, _, config, quiet) = found;
        prop_assert_eq!(
            rest.map(|matches| found_by_clap(&matches)).map_err(|error| error.kind()),
            Ok((subcommands, Vec::new(), config, quiet))
        );
    }
    Ok(())
}

/// Returns the arguments for an option and its value, in one of the forms that clap accepts.
fn typed(arg: &Arg, value: &str, form: usize) -> Vec<String> {
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
fn leaves(command: &Command, path: &[String], found: &mut Vec<(Vec<String>, Command)>) {
    if !command.is_subcommand_required_set() {
        found.push((path.to_vec(), command.clone()));
    }
    for subcommand in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        for name in [subcommand.get_name()].into_iter().chain(subcommand.get_all_aliases()) {
            leaves(subcommand, &[path, &[name.to_owned()]].concat(), found);
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
        words.extend(
            before.iter().flat_map(|(value, form)| {
                typed(find_long(&command, "config").unwrap(), value, *form)
            }),
        );
        words.extend(path);
        let args: Vec<_> =
            leaf.get_arguments().filter(|arg| arg.get_long() != Some("help")).collect();
        let args: Vec<_> = args.into_iter().filter(|arg| !arg.is_positional()).collect();
        // The second option is always the database, if the command has one.
        let database = find_long(&leaf, "database");
        for (number, (index, value, form)) in options.into_iter().enumerate() {
            let arg =
                database.filter(|_| number == 1).unwrap_or_else(|| args[index.index(args.len())]);
            words.extend(typed(arg, &value, form));
        }
        words.into_iter().map(OsString::from).collect()
    })
}

/// Words that are significant to the scan, in random order.
fn any_words() -> impl Strategy<Value = Vec<OsString>> {
    let words = [
        "run",
        "verify",
        "server",
        "rows",
        "load",
        "oltp",
        "point",
        "psql",
        "report",
        "doctor",
        "read-only",
        "help",
        "-d",
        "-dx",
        "-d=x",
        "-nd",
        "-qd",
        "-qnd=x",
        "-q",
        "-n",
        "-",
        "--",
        "-3",
        "-d-3",
        "--database",
        "--database=x",
        "--database=",
        "--config",
        "--config=f",
        "-c",
        "-c4",
        "-cd",
        "--threads",
        "--table_name",
        "--index_only",
        "--auto_inc",
        "--auto-inc=off",
        "--auto-inc=",
        "--quiet=x",
        "--databas=x",
        "ru",
        "--color",
        "-x",
        "--=x",
        "---",
        "x",
        "",
        "-nq",
        "-fd",
        "-t",
    ];
    let bytes = [&b"-d\xff"[..], b"--database=\xff", b"-q\xff", b"\xff", b"--\xff"];
    let words = words.iter().map(|word| OsString::from(*word));
    let bytes = bytes.iter().map(|bytes| OsString::from_vec(bytes.to_vec()));
    let word = select(words.chain(bytes).collect::<Vec<_>>());
    let path = select(vec!["run load", "run oltp", "run rows", "server psql", "cleanup rows", ""]);
    (path, prop::collection::vec(word, 0..6)).prop_map(|(path, words)| {
        let path = path.split_whitespace().map(OsString::from);
        std::iter::once("riops".into()).chain(path).chain(words).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_clap_about_well_formed_lines(arguments in command_line()) {
        assert_agrees_with_clap(arguments)?;
    }

    #[test]
    fn agrees_with_clap_about_random_words(arguments in any_words()) {
        assert_agrees_with_clap(arguments)?;
    }
}
