//! `riops fleet manifest`: the manifests of Kubernetes for a command. They are those of `deploy/kubernetes/base`, with the
//! command, the number of agents, the name and the image.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use riops::plan::Share;
use riops::units::secret::CommandLine;

use crate::args::{Command, ManifestOptions};
use crate::experiment::words::has_password;
use crate::failure::{UsageError, refuse};
use crate::settings::parse_words;

const JOB: &str = include_str!("../../kubernetes/job.yaml");
const ACCESS: &str = include_str!("../../kubernetes/access.yaml");

/// Longest name of a Job: its pods have a host name with the index, which has at most 63 characters.
const NAME_MAX: usize = 58;
/// Characters that a CronJob adds to its name for each Job.
const CRON_SUFFIX: usize = 11;

/// Prints the manifests.
pub(super) fn print(options: &ManifestOptions) -> Result<ExitCode> {
    crate::ui::print_done(&manifests(options)?)
}

fn manifests(options: &ManifestOptions) -> Result<String> {
    let ManifestOptions { agents, name, command, .. } = options;
    require_names(options)?;
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
    let access = ACCESS
        .replace("minAvailable: 4", &format!("minAvailable: {agents}"))
        .replace("instance: riops", &format!("instance: {name}"))
        .replace("  name: riops\nspec:", &format!("  name: {name}\nspec:"));
    let job = job(options, &words);
    let job = options.schedule.as_ref().map(|schedule| nightly(&job, schedule)).unwrap_or(job);
    let objects = format!("{access}---\n{job}");
    let objects = match &options.namespace {
        Some(space) => {
            objects.replace("\nmetadata:\n", &format!("\nmetadata:\n  namespace: {space}\n"))
        }
        None => objects,
    };
    Ok(instructions(options) + &objects)
}

/// Returns the commands for the manifests, as comments. The addresses are in no manifest: it can be applied again.
fn instructions(options: &ManifestOptions) -> String {
    let ManifestOptions { agents, name, secret, .. } = options;
    let namespace =
        options.namespace.as_ref().map_or_else(String::new, |name| format!(" --namespace {name}"));
    let apply = if options.schedule.is_some() {
        format!("Once, and again after a change:\n#   kubectl{namespace} apply -f FILE")
    } else {
        format!(
            "Each time, because a Job is executed once:\n#   kubectl{namespace} delete --ignore-not-found -f FILE && kubectl{namespace} apply -f FILE"
        )
    };
    format!(
        "# Once: the addresses of the server that is measured, and of the PostgreSQL database in which the agents meet and the result\n# is stored. It must not be on the server that is measured: its writes would be part of the result.\n#   kubectl{namespace} create secret generic {secret} --from-literal=database=\"$RIOPS_DATABASE\" --from-literal=store=\"$RIOPS_STORE\"\n# {apply}\n# The output of all agents:\n#   kubectl{namespace} logs -l app.kubernetes.io/instance={name} --prefix --tail=-1 --max-log-requests={agents}\n"
    )
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

/// Fails unless the names and quantities are such of Kubernetes.
fn require_names(options: &ManifestOptions) -> Result<()> {
    let max = NAME_MAX - if options.schedule.is_some() { CRON_SUFFIX } else { 0 };
    require_name("--name", &options.name, max)?;
    for (option, name) in [
        ("--namespace", options.namespace.as_ref()),
        ("--secret", Some(&options.secret)),
        ("--pull-secret", options.pull_secret.as_ref()),
    ] {
        name.map_or(Ok(()), |name| require_name(option, name, 63))?;
    }
    for (option, quantity) in [("--cpu", &options.cpu), ("--memory", &options.memory)] {
        let unit = quantity.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = quantity.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok());
        let units = ["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"];
        if number.is_none_or(|number| number <= 0.0) || !units.contains(&unit) {
            return refuse(format!("{option} \"{quantity}\" is no quantity, such as 2, 500m, 1Gi"));
        }
    }
    let is_pair = |pair: &String| pair.split_once('=').is_some_and(|(key, _)| !key.is_empty());
    if let Some(pair) = options.node_selector.iter().find(|pair| !is_pair(pair)) {
        return refuse(format!("--node-selector \"{pair}\": expected LABEL=VALUE"));
    }
    match &options.schedule {
        Some(schedule) if schedule.split_whitespace().count() != 5 => refuse(format!(
            "--schedule \"{schedule}\": expected five fields, such as \"0 2 * * *\""
        )),
        _ if options.deadline.0.as_secs() == 0 => refuse("--deadline must be at least 1 s"),
        _ => Ok(()),
    }
}

/// Fails unless a name is a label of DNS.
fn require_name(option: &str, name: &str, max: usize) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_valid = name.chars().all(is_allowed)
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-');
    if is_valid && name.len() <= max {
        return Ok(());
    }
    refuse(format!(
        "{option} \"{name}\" must consist of at most {max} lower-case letters, digits and hyphens, and start with a letter"
    ))
}

/// Returns the words of the command, without the name of the program.
fn words(command: &[OsString]) -> Result<Vec<String>> {
    let texts: Option<Vec<String>> =
        command.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let texts = texts.ok_or_else(|| UsageError("the command is not valid UTF-8".to_owned()))?;
    let skipped = usize::from(texts.first().is_some_and(|word| word == "riops"));
    Ok(texts.into_iter().skip(skipped).collect())
}

/// Returns the Job of the base with other values.
fn job(options: &ManifestOptions, words: &[String]) -> String {
    const ARGUMENTS: &str = "          args:\n";
    const AFTER: &str = "          env:\n";
    let ManifestOptions { agents, name, image, secret, cpu, memory, .. } = options;
    let (before, rest) = JOB.split_once(ARGUMENTS).unwrap_or_default();
    let (_, after) = rest.split_once(AFTER).unwrap_or_default();
    let items = words.iter().map(|word| format!("            - {}\n", quoted(word)));
    let text = [before, ARGUMENTS, &items.collect::<String>(), AFTER, after].concat();
    let seconds = options.deadline.0.as_secs();
    let selectors = options.node_selector.iter().filter_map(|pair| pair.split_once('='));
    let selectors: String = selectors
        .map(|(label, value)| format!("        {}: {}\n", quoted(label), quoted(value)))
        .collect();
    let pull = options.pull_secret.as_ref().map_or_else(String::new, |name| {
        format!("      imagePullSecrets:\n        - name: {name}\n")
    });
    let node = if selectors.is_empty() {
        selectors
    } else {
        "      nodeSelector:\n".to_owned() + &selectors
    };
    let account = "      serviceAccountName: riops\n";
    [
        ("metadata:\n  name: riops\n", format!("metadata:\n  name: {name}\n")),
        ("instance: riops", format!("instance: {name}")),
        ("completions: 4", format!("completions: {agents}")),
        ("parallelism: 4", format!("parallelism: {agents}")),
        ("activeDeadlineSeconds: 21600", format!("activeDeadlineSeconds: {seconds}")),
        (account, format!("{account}{pull}{node}")),
        ("image: riops:latest", format!("image: {}", quoted(image))),
        (
            "                  name: riops\n                  key",
            format!("                  name: {secret}\n                  key"),
        ),
        ("cpu: \"2\"", format!("cpu: {}", quoted(cpu))),
        ("memory: 512Mi", format!("memory: {}", quoted(memory))),
    ]
    .into_iter()
    .fold(text, |text, (from, to)| text.replace(from, &to))
}

/// Returns a CronJob that creates the Job at the times of a schedule. Two Jobs at a time would disturb each other.
fn nightly(job: &str, schedule: &str) -> String {
    let (head, specification) = job.split_once("\nspec:\n").unwrap_or_default();
    let labels = head.split_once("\n  labels:\n").unwrap_or_default().1;
    let indented =
        |text: &str| -> String { text.lines().map(|line| format!("    {line}\n")).collect() };
    let head = head.replace("kind: Job", "kind: CronJob");
    format!(
        "{head}\nspec:\n  schedule: {}\n  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 600\n  jobTemplate:\n    metadata:\n      labels:\n{}    spec:\n{}",
        quoted(schedule),
        indented(labels),
        indented(specification)
    )
}

/// A text as in JSON, which is also YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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
    fn what_the_schemas_do_not_check_is_right() {
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
        let wrong = |change: fn(&mut ManifestOptions)| {
            let mut options = options("a", "run ping");
            change(&mut options);
            manifests(&options).unwrap_err().to_string()
        };
        assert!(
            wrong(|options| options.schedule = Some("daily".to_owned())).contains("five fields")
        );
        let long = |options: &mut ManifestOptions| {
            (options.schedule, options.name) = (Some("0 2 * * *".to_owned()), "a".repeat(48));
        };
        assert!(wrong(long).contains("at most 47"));
        assert!(wrong(|options| options.cpu = "two".to_owned()).contains("--cpu"));
        assert!(wrong(|options| options.memory = "1GB".to_owned()).contains("--memory"));
        assert!(wrong(|options| options.node_selector = vec!["x".to_owned()]).contains("LABEL"));
        assert!(
            wrong(|options| options.namespace = Some("a\nb".to_owned())).contains("--namespace")
        );
        assert!(wrong(|options| options.deadline = Span(Duration::ZERO)).contains("--deadline"));
        assert!(refused("Night", "run ping").contains("lower-case letters"));
        assert!(refused(&"a".repeat(59), "run ping").contains("at most 58"));
        assert!(refused("a", "run ping --no-such-option").contains("--no-such-option"));
        assert!(refused("a", "runs list").contains("only riops run and riops sweep"));
        assert!(refused("a", "run ping --agents 3").contains("are set by the manifest"));
    }
}
