//! Manifests of Kubernetes for a fleet whose agents are pods: `deploy/kubernetes/base` with other values.

use crate::plan::{PlanError, refuse};
use crate::units::Span;
use crate::units::format::joined;

const JOB: &str = include_str!("../../kubernetes/job.yaml");
const ACCESS: &str = include_str!("../../kubernetes/access.yaml");

/// Longest name of a Job: its pods have a host name with the index, which has at most 63 characters.
const NAME_MAX: usize = 58;
/// Characters that a `CronJob` adds to its name for each Job.
const CRON_SUFFIX: usize = 11;

/// A Job, or with a schedule a `CronJob`, whose pods are the agents of a fleet.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Number of agents, each in a pod.
    pub agents: u32,
    /// Name of the Job and of the fleet.
    pub name: String,
    /// Image with riops as its entry point.
    pub image: String,
    /// The five fields of a `CronJob`.
    pub schedule: Option<String>,
    /// Namespace of all objects.
    pub namespace: Option<String>,
    /// Secret with the addresses `database` and `store`.
    pub secret: String,
    /// Secret with which the image is pulled.
    pub pull_secret: Option<String>,
    /// Processors that each pod requests.
    pub cpu: String,
    /// Memory that each pod requests, and its limit.
    pub memory: String,
    /// Labels of the machines, as `LABEL=VALUE`.
    pub node_selector: Vec<String>,
    /// Time after which the Job fails.
    pub deadline: Span,
}

impl Manifest {
    /// Returns the manifests of a command, given by its words without `riops`, with the commands of kubectl as comments.
    ///
    /// # Errors
    /// [`PlanError`] for a name or a quantity that Kubernetes does not accept.
    pub fn text(&self, words: &[String]) -> Result<String, PlanError> {
        let Self { agents, name, .. } = self;
        self.require_names()?;
        let access = ACCESS
            .replace("minAvailable: 4", &format!("minAvailable: {agents}"))
            .replace("instance: riops", &format!("instance: {name}"))
            .replace("  name: riops\nspec:", &format!("  name: {name}\nspec:"));
        let job = self.job(words);
        let job = self.schedule.as_ref().map(|schedule| nightly(&job, schedule)).unwrap_or(job);
        let objects = format!("{access}---\n{job}");
        let namespace = self
            .namespace
            .as_ref()
            .map_or_else(String::new, |name| format!("  namespace: {name}\n"));
        let metadata = format!("\nmetadata:\n{namespace}");
        Ok(self.instructions() + &objects.replace("\nmetadata:\n", &metadata))
    }

    /// Returns the commands for the manifests, as comments. No manifest contains the addresses, so it can be applied again.
    fn instructions(&self) -> String {
        let Self { agents, name, secret, .. } = self;
        let namespace =
            self.namespace.as_ref().map_or_else(String::new, |name| format!(" --namespace {name}"));
        let apply = if self.schedule.is_some() {
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

    /// Fails for names and quantities that Kubernetes does not accept.
    fn require_names(&self) -> Result<(), PlanError> {
        let max = NAME_MAX - if self.schedule.is_some() { CRON_SUFFIX } else { 0 };
        require_name("--name", &self.name, max)?;
        for (option, name) in [
            ("--namespace", self.namespace.as_ref()),
            ("--secret", Some(&self.secret)),
            ("--pull-secret", self.pull_secret.as_ref()),
        ] {
            name.map_or(Ok(()), |name| require_name(option, name, 63))?;
        }
        for (option, quantity) in [("--cpu", &self.cpu), ("--memory", &self.memory)] {
            let unit = quantity.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let amount = quantity.strip_suffix(unit).and_then(|digits| digits.parse::<f64>().ok());
            let units = ["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"];
            if amount.is_none_or(|amount| amount <= 0.0) || !units.contains(&unit) {
                return refuse(format!(
                    "{option} \"{quantity}\" is not a quantity, such as 2, 500m, 1Gi"
                ));
            }
        }
        let is_pair = |pair: &String| pair.split_once('=').is_some_and(|(key, _)| !key.is_empty());
        if let Some(pair) = self.node_selector.iter().find(|pair| !is_pair(pair)) {
            return refuse(format!("--node-selector \"{pair}\": expected LABEL=VALUE"));
        }
        match &self.schedule {
            Some(schedule) if schedule.split_whitespace().count() != 5 => refuse(format!(
                "--schedule \"{schedule}\": expected five fields, such as \"0 2 * * *\""
            )),
            _ if self.deadline.0.as_secs() == 0 => refuse("--deadline must be at least 1 s"),
            _ => Ok(()),
        }
    }

    /// Returns the Job of the base with other values.
    fn job(&self, words: &[String]) -> String {
        const ARGUMENTS: &str = "          args:\n";
        const AFTER: &str = "          env:\n";
        let Self { agents, name, image, secret, cpu, memory, .. } = self;
        let (before, rest) = JOB.split_once(ARGUMENTS).unwrap_or_default();
        let (_, after) = rest.split_once(AFTER).unwrap_or_default();
        let items = words.iter().map(|word| format!("            - {}\n", quoted(word)));
        let text = [before, ARGUMENTS, &items.collect::<String>(), AFTER, after].concat();
        let seconds = self.deadline.0.as_secs();
        let selectors = self.node_selector.iter().filter_map(|pair| pair.split_once('='));
        let selectors = joined(
            selectors.map(|(name, value)| format!("        {}: {}\n", quoted(name), quoted(value))),
            "",
        );
        let pull = self.pull_secret.as_ref().map_or_else(String::new, |name| {
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
}

/// Fails unless a name is a label of DNS.
fn require_name(option: &str, name: &str, max: usize) -> Result<(), PlanError> {
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

/// Returns a `CronJob` that creates the Job at the times of a schedule. Two Jobs at a time would disturb each other.
fn nightly(job: &str, schedule: &str) -> String {
    let (head, specification) = job.split_once("\nspec:\n").unwrap_or_default();
    let labels = head.split_once("\n  labels:\n").unwrap_or_default().1;
    let indented = |text: &str| joined(text.lines().map(|line| format!("    {line}\n")), "");
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

    use super::*;

    #[test]
    fn names_and_quantities_that_kubernetes_does_not_accept_are_refused() {
        let refused = |change: fn(&mut Manifest)| {
            let mut manifest = Manifest {
                agents: 1,
                name: "a".repeat(47),
                image: "i".to_owned(),
                schedule: Some("0 2 * * *".to_owned()),
                namespace: None,
                secret: "s".to_owned(),
                pull_secret: None,
                cpu: "1.5".to_owned(),
                memory: "1Gi".to_owned(),
                node_selector: Vec::new(),
                deadline: Span(Duration::from_secs(1)),
            };
            manifest.text(&[]).unwrap();
            change(&mut manifest);
            manifest.text(&[]).unwrap_err().to_string()
        };
        assert!(
            refused(|manifest| manifest.schedule = Some("daily".to_owned()))
                .contains("five fields")
        );
        assert!(refused(|manifest| manifest.name.push('a')).contains("at most 47"));
        let long =
            |manifest: &mut Manifest| (manifest.schedule, manifest.name) = (None, "a".repeat(59));
        assert!(refused(long).contains("at most 58"));
        assert!(
            refused(|manifest| manifest.name = "Night".to_owned()).contains("lower-case letters")
        );
        assert!(refused(|manifest| manifest.cpu = "two".to_owned()).contains("--cpu"));
        assert!(refused(|manifest| manifest.memory = "1GB".to_owned()).contains("--memory"));
        assert!(
            refused(|manifest| manifest.node_selector.push("x".to_owned())).contains("LABEL=VALUE")
        );
        assert!(
            refused(|manifest| manifest.namespace = Some("a\nb".to_owned()))
                .contains("--namespace")
        );
        assert!(
            refused(|manifest| manifest.deadline = Span(Duration::ZERO)).contains("--deadline")
        );
    }
}
