//! `riops fleet manifest`: checks the command that the pods execute, and prints the manifests (`riops::fleet::Manifest`).

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use riops::plan::Share;
use riops::units::secret::CommandLine;

use crate::args::{Command, ManifestOptions};
use crate::experiment::words::has_password;
use crate::failure::{UsageError, refuse};
use crate::settings::parse_words;

/// Prints the manifests.
pub(super) fn print(options: &ManifestOptions) -> Result<ExitCode> {
    crate::ui::print_done(&manifests(options)?)
}

fn manifests(options: &ManifestOptions) -> Result<String> {
    let ManifestOptions { agents, name, command, .. } = options;
    let words = words(command)?;
    if words.first().is_none_or(|word| word != "run" && word != "sweep") {
        return refuse("only riops run and riops sweep can be executed by a fleet in pods");
    }
    require_no_secret(&words)?;
    let given = |option: &str| words.iter().any(|word| word.split('=').next() == Some(option));
    if ["--fleet", "--agents", "--agent"].into_iter().any(given) {
        return refuse("--fleet, --agents and --agent of the command are set by the manifest");
    }
    let of_fleet = ["--fleet", name, "--agents", &agents.to_string()].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain(of_fleet).collect();
    let full = std::iter::once("riops").chain(words.iter().map(String::as_str)).map(OsString::from);
    let parsed = parse_words(&full.collect::<Vec<_>>()).map_err(UsageError)?;
    require_divisible(&parsed.command, *agents)?;
    Ok(options.manifest().text(&words)?)
}

/// Fails for a command with a password or a token, in any of its words: everyone who may read the Job would see it.
fn require_no_secret(words: &[String]) -> Result<()> {
    let values = words.iter().filter_map(|word| Some(word.split_once('=')?.1));
    let has_address = words.iter().map(String::as_str).chain(values).any(has_password);
    if has_address || CommandLine::from(words.to_vec()).has_secret() {
        return refuse(
            "the command has a password or a token, which everyone who may read the Job would see: put addresses into the Secret, omit -d and --store, and name a file for a token",
        );
    }
    Ok(())
}

/// Fails for a run that a fleet would refuse.
fn require_divisible(command: &Command, agents: u32) -> Result<()> {
    let Command::Run(run) = command else {
        return Ok(());
    };
    let Some(workload) = &run.workload else {
        return refuse("a plan from a file is not in the pods: specify the workload");
    };
    let (plan, options) = (workload.options().plan()?, workload.options().options());
    plan.validate()?;
    plan.shared(Share { agent: 0, agents })?;
    if options.keep.no_store || options.keep.repeat.repeat.is_some() {
        return refuse("--fleet cannot be combined with --no-store and --repeat");
    }
    Ok(())
}

/// Returns the words of the command, without the name of the program.
fn words(command: &[OsString]) -> Result<Vec<String>> {
    let texts: Option<Vec<String>> =
        command.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let texts = texts.ok_or_else(|| UsageError("the command is not valid UTF-8".to_owned()))?;
    let skipped = usize::from(texts.first().is_some_and(|word| word == "riops"));
    Ok(texts.into_iter().skip(skipped).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use riops::units::Span;

    use super::*;

    fn options(name: &str, command: &str) -> ManifestOptions {
        ManifestOptions {
            agents: 8,
            name: name.to_owned(),
            image: "registry/riops:1".to_owned(),
            command: command.split_whitespace().map(OsString::from).collect(),
            schedule: None,
            namespace: None,
            secret: "riops".to_owned(),
            pull_secret: None,
            cpu: "2".to_owned(),
            memory: "512Mi".to_owned(),
            node_selector: Vec::new(),
            deadline: Span(Duration::from_hours(6)),
        }
    }

    #[test]
    fn the_manifests_of_a_command() {
        let text = manifests(&options("night", "riops run oltp -c 64 --label=a:b")).unwrap();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_manifests_with_all_options() {
        let text = manifests(&ManifestOptions {
            schedule: Some("0 2 * * *".to_owned()),
            namespace: Some("bench".to_owned()),
            secret: "addresses".to_owned(),
            pull_secret: Some("registry".to_owned()),
            cpu: "1500m".to_owned(),
            memory: "1Gi".to_owned(),
            node_selector: vec!["pool=clients".to_owned(), "x/arch=".to_owned()],
            deadline: Span(Duration::from_hours(1)),
            ..options("night", "run oltp -c 64")
        });
        insta::assert_snapshot!(text.unwrap());
    }

    #[test]
    fn sets_the_values_that_the_schemas_do_not_check() {
        let text = manifests(&options("night", "run ping -c 8")).unwrap();
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{key}: ")));
            line.unwrap_or_else(|| panic!("no {key}"))
        };
        assert_eq!(value("completionMode"), "Indexed");
        assert_eq!((value("completions"), value("parallelism")), ("8", "8"));
        assert_eq!((value("restartPolicy"), value("backoffLimit")), ("Never", "0"));
        assert_eq!(value("enableServiceLinks"), "false");
        assert_eq!(value("automountServiceAccountToken"), "false");
        assert_eq!((value("minAvailable"), value("activeDeadlineSeconds")), ("8", "21600"));
        // A second application would overwrite the addresses.
        assert!(!text.contains("kind: Secret"));
        let limits = text.split("limits:").nth(1).unwrap().lines().nth(1).unwrap();
        assert_eq!(limits.trim(), "memory: \"512Mi\"");
        assert!(!text.contains("limits:\n              cpu"));
    }

    #[test]
    fn a_command_with_a_secret_is_refused_in_every_form() {
        for (command, secret) in [
            ("run", "-d postgresql://u:s3cret@h/db"),
            ("run", "-dpostgresql://u:s3cret@h/db"),
            ("run", "--database=postgresql://h/db?user=u&password=s3cret"),
            ("run", "--database=postgresql://h/db?p%61ssword=s3cret"),
            ("run", "-d password=s3cret"),
            ("run", "-d sslpassword=s3cret"),
            ("run", "-d dbname=postgresql://u:s3cret@h/db"),
            ("run", "--store postgresql://u:s3cret@h/db"),
            ("run", "--store=password=s3cret"),
            ("run", "--metrics-push http://u:s3cret@h:9090/push"),
            ("run", "--probe lag=select/**/'password=s3cret'"),
            ("sweep", "-d postgresql://u:s3cret@h/db"),
            ("sweep", "--store postgresql://u:s3cret@h/db"),
            ("sweep", "--axis database=postgresql://u:s3cret@h/a,postgresql://h/b"),
            ("sweep", "--set database=postgresql://u:s3cret@h/a"),
            ("sweep", "--token s3cret"),
            ("sweep", "--metrics-token=s3cret"),
        ] {
            let line = format!("{command} oltp {secret}");
            let error = manifests(&options("night", &line)).expect_err(&line).to_string();
            assert!(error.contains("put addresses into the Secret"), "{line}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        let mut spaced = options("night", "run oltp -d");
        spaced.command.push("host=h options='-c a.password=s3cret' password = 's3 cret'".into());
        assert!(manifests(&spaced).is_err());
        assert!(manifests(&options("night", "run oltp -c 8 -d postgresql://u@h/db")).is_ok());
    }

    #[test]
    fn commands_that_no_pod_could_execute_are_refused() {
        let refused =
            |name: &str, command: &str| manifests(&options(name, command)).unwrap_err().to_string();
        assert!(refused("a", "run ping --no-such-option").contains("--no-such-option"));
        assert!(refused("a", "runs list").contains("only riops run and riops sweep"));
        assert!(refused("a", "run ping --agents 3").contains("are set by the manifest"));
    }
}
