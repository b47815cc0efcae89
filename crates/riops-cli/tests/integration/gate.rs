//! Gates and bisections over the commits of a repository, whose builds are scripts.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::crash::kill;
use crate::fixture::{CommandOutput, Database, database, folder};

const FILE: &str = r#"
effect = "50%"
rounds-max = 16
repeat-disturbed = 0
build = "test ! -e broken && cp bench.sql $PREFIX"
[options]
file = "{prefix}/bench.sql"
sessions = 2
warmup = "0"
duration = "200ms"
[[workload]]
run = "script"
name = "select"
"#;

/// A repository in which the script is slow from one commit on, and another commit cannot be built.
pub(crate) struct Place {
    target: Database,
    pub(crate) folder: PathBuf,
}

impl Place {
    pub(crate) fn new(name: &str, commits: usize, slow: usize, broken: Option<usize>) -> Self {
        let folder = folder(&format!("gate-{name}"));
        let repository = folder.join("repository");
        std::fs::create_dir(&repository).unwrap();
        std::fs::write(folder.join("gate.toml"), FILE).unwrap();
        git(&repository, &["init", "-q", "-b", "main"]);
        for commit in 0..commits {
            // Sleeping takes as long on a busy machine, and much longer than the wait for a processor.
            let seconds = if commit >= slow { 0.075 } else { 0.015 };
            let script = format!("select pg_sleep({seconds}); -- {commit}\n");
            std::fs::write(repository.join("bench.sql"), script).unwrap();
            if broken == Some(commit) {
                std::fs::write(repository.join("broken"), "").unwrap();
            } else {
                let _ = std::fs::remove_file(repository.join("broken"));
            }
            git(&repository, &["add", "-A"]);
            git(&repository, &["commit", "-q", "-m", &format!("change {commit}")]);
        }
        Self { target: database(&format!("gate_{name}")), folder }
    }

    fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = self.target.command(line);
        let builds = self.folder.join("builds");
        command.args(["--builds", &builds.to_string_lossy()]).current_dir(self.repository());
        command
    }

    fn riops(&self, line: &str) -> CommandOutput {
        CommandOutput::run(&mut self.command(line))
    }
}

/// Executes git, and returns what it prints.
fn git(repository: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(arguments);
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "n").env(format!("{name}_EMAIL"), "n@example.com");
    }
    let output = CommandOutput::from(command.output().unwrap()).expect(0);
    output.stdout.trim().to_owned()
}

#[test]
fn a_gate_says_in_each_form_that_the_head_is_slower() {
    let place = Place::new("forms", 3, 2, None);
    let (junit, page) = (place.folder.join("junit.xml"), place.folder.join("page.html"));
    let line = format!(
        "gate ../gate.toml --base HEAD~1 --output json --annotations --trust -o junit={} -o html={}",
        junit.display(),
        page.display()
    );
    let text = "::error title=riops gate%3A select::SLOWER: ended after 4 rounds";
    let report: Value = place.riops(&line).expect(1).stderr_contains(text).json();
    assert_eq!(
        (&report["verdict"], &report["workloads"][0]["runs"]),
        (&"slower".into(), &16.into())
    );
    let commits = ["HEAD~1", "HEAD"].map(|name| git(&place.repository(), &["rev-parse", name]));
    for (variant, commit) in report["variants"].as_array().unwrap().iter().zip(&commits) {
        assert_eq!(variant.as_str().unwrap(), &commit[..12]);
    }
    let figure = &report["workloads"][0]["figures"][0];
    assert!(figure["against"]["ratio"].as_f64().unwrap() < 0.5, "{figure}");
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains(r#"tests="1" failures="1" errors="0""#), "{xml}");
    assert!(std::fs::read_to_string(page).unwrap().contains("SLOWER"));
    // The two builds are kept: the same commits are not built again.
    let again = place.riops("gate ../gate.toml --base HEAD~2 --head HEAD~1 --trust").expect(0);
    assert_eq!(again.stderr.matches("building ").count(), 1, "{}", again.stderr);
    again.stdout_contains("riops gate: not slower");
    // A limit that allows no run decides nothing.
    let line = "gate ../gate.toml --base HEAD~1 --trust --time-limit 1ms";
    place.riops(line).expect(0).stdout_contains("exit code 0: inconclusive = \"pass\"");
    let line = "gate ../gate.toml --base HEAD~1 --trust --time-limit 1ms --exit-code bisect";
    place.riops(line).expect(125).stdout_contains("INCONCLUSIVE: time limit reached");
    std::fs::write(place.folder.join("neutral.toml"), format!("inconclusive = 'neutral'{FILE}"))
        .unwrap();
    let line = "gate ../neutral.toml --base HEAD~1 --trust --time-limit 1ms";
    place.riops(line).expect(3).stdout_contains("exit code 3: inconclusive = \"neutral\"");
}

#[test]
fn a_cost_makes_a_gate_and_a_comparison_fail_where_the_rate_does_not() {
    let place = Place::new("costs", 2, 1, None);
    // As fast, within 50%, but with so many times the blocks that a visit of autovacuum during a run hides nothing.
    let script = |rows: u32| {
        format!("select pg_sleep(0.01), count(t) from gate_costs where id <= {rows};\n")
    };
    let mut connection = place.target.connect();
    let create = "create table gate_costs with (autovacuum_enabled = off) as select g id, repeat('x', 500) t from generate_series(1, 2000) g; alter table gate_costs add primary key (id); vacuum analyze gate_costs";
    for sql in create.split("; ") {
        connection.execute(sql).unwrap();
    }
    // PostgreSQL counts the blocks of an idle session up to 10 s late: a run would include them.
    drop(connection);
    for (name, rows) in [("base", 10), ("head", 2000)] {
        std::fs::write(place.folder.join(format!("{name}.sql")), script(rows)).unwrap();
    }
    let file = |costs: &str| {
        let folder = place.folder.display();
        format!(
            "effect = '50%'\nrounds-max = 16\nrepeat-disturbed = 0\ninconclusive = 'pass'\n{costs}\n[options]\nsessions = 1\nwarmup = '0'\ntransactions = 20\n[base]\nfile = '{folder}/base.sql'\n[head]\nfile = '{folder}/head.sql'\n[[workload]]\nrun = 'script'\n"
        )
    };
    let gate = place.folder.join("gate.toml");
    std::fs::write(&gate, file("costs = ['blocks']")).unwrap();
    let red = place.riops("gate ../gate.toml --trust").expect(1);
    red.stdout_contains("SLOWER").stdout_contains("blocks");
    std::fs::write(&gate, file("costs = ['sleep']")).unwrap();
    place.riops("gate ../gate.toml --trust").expect(2).stderr_contains("unknown variant");
    // In turns: a machine that becomes slower affects both alike.
    for name in ["base", "head"].repeat(4) {
        let file = place.folder.join(format!("{name}.sql"));
        let line = format!(
            "run script --file {} -c 1 --warmup 0 --transactions 20 --label {name}",
            file.display()
        );
        place.target.riops(&line).expect(0);
    }
    let compare = "compare base head --effect 50%";
    place.target.riops(&format!("{compare} --fail-on slower,cost:wal")).expect(0);
    let red = place.target.riops(&format!("{compare} --fail-on cost:blocks,cost:wal")).expect(99);
    red.stderr_contains("a transaction costs more in B: ");
}

#[test]
fn a_build_gets_no_passwords_and_empties_no_foreign_directory() {
    let place = Place::new("env", 2, 2, None);
    let line = "gate ../gate.toml --base HEAD~1 --trust --time-limit 1ms --exit-code bisect";
    let build = ["--build", "env > $PREFIX/env; cp bench.sql $PREFIX"];
    let mut command = place.command(line);
    command.args(build).env("PGPASSWORD", "s3cret");
    CommandOutput::run(command.env("RIOPS_FACT", "owner=me")).expect(125);
    let builds = place.folder.join("builds");
    let folders: Vec<_> = builds.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 2);
    for folder in &folders {
        let text = std::fs::read_to_string(folder.join("prefix/env")).unwrap();
        let of_riops = |line: &&str| line.starts_with("RIOPS_") || line.starts_with("PGPASSWORD");
        assert_eq!(text.lines().find(of_riops), None);
        assert!(text.contains("PREFIX=") && text.contains("PATH="));
    }
    // A directory of others behind a link, where one of riops is expected.
    let other = place.folder.join("other");
    for name in ["prefix", "source"] {
        std::fs::create_dir_all(other.join(name)).unwrap();
        std::fs::write(other.join(name).join("mine"), "").unwrap();
    }
    for folder in &folders {
        std::fs::remove_dir_all(folder).unwrap();
        std::os::unix::fs::symlink(&other, folder).unwrap();
    }
    let mut command = place.command(line);
    command.args(build);
    let refused = CommandOutput::run(&mut command);
    assert_ne!(refused.code, Some(0));
    refused.stderr_contains("is not the directory of a build of riops");
    assert!(other.join("prefix/mine").exists() && other.join("source/mine").exists());
}

#[test]
fn a_gate_ends_with_the_exit_codes_that_a_bisection_expects() {
    let place = Place::new("codes", 3, 9, Some(2));
    let line = "gate ../gate.toml --base HEAD~1 --exit-code bisect";
    place.riops(line).expect(128).stderr_contains("is executed: permit it with --trust");
    let unwritable = format!("{line} --trust -o html=missing/page.html");
    place.riops(&unwritable).expect(128).stderr_contains("cannot write missing/page.html");
    let broken = place.riops(&format!("{line} --trust")).expect(125);
    broken.stderr_contains("the build of ").stderr_contains("log");
    place.riops("gate ../gate.toml --base HEAD~1 --trust").expect(1);
    let unknown = place.riops("gate ../gate.toml --base nothing --trust").expect(2);
    unknown.stderr_contains("\"nothing\" is not a commit of the repository .");
    let without = place.riops("gate ../gate.toml --trust").expect(2);
    without.stderr_contains("specify the commit of the base: --base REV");
    let unbuilt = FILE.replace("build = ", "# build = ");
    std::fs::write(place.folder.join("gate.toml"), unbuilt).unwrap();
    place.riops("gate ../gate.toml --trust").expect(2).stderr_contains("needs a build: specify");
    std::fs::write(place.folder.join("gate.toml"), "effect = '5%'\nworkload = []\n").unwrap();
    place.riops("gate ../gate.toml").expect(2).stderr_contains("there is no [[workload]]");
}

#[test]
fn a_bisection_finds_the_commit_and_continues_where_it_ended() {
    let place = Place::new("bisect", 9, 5, Some(3));
    let before = git(&place.repository(), &["status", "--porcelain", "--branch"]);
    let line = "bisect ../gate.toml --good HEAD~8 --trust --output json";
    let report: Value = place.riops(line).expect(0).json();
    assert_eq!(report["found"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["found"][0]["subject"], "change 5");
    let steps = report["steps"].as_array().unwrap();
    assert!((3..=6).contains(&steps.len()), "{report}");
    // The repository is only read.
    assert_eq!(git(&place.repository(), &["status", "--porcelain", "--branch"]), before);
    // The same command measures nothing.
    let count = || place.target.riops("runs list --output json").json().as_array().unwrap().len();
    let runs = count();
    let text = place.riops("bisect ../gate.toml --good HEAD~8 --trust").expect(0);
    text.stdout_contains("the first slow commit: ").stdout_contains("change 5");
    assert_eq!(count(), runs);
    let line = "bisect ../gate.toml --good HEAD~8 --bad HEAD~7 --trust";
    let none = place.riops(line).expect(1);
    none.stderr_contains("the bad commit is not slower than the good one")
        .stdout_contains("nothing: the bad commit is not slower");
    let line = "bisect ../gate.toml --good HEAD --bad HEAD~1 --trust";
    place.riops(line).expect(2).stderr_contains("has no commit that --good HEAD does not have");
}

#[test]
fn git_bisect_run_finds_the_commit() {
    let place = Place::new("git", 5, 3, None);
    let good = git(&place.repository(), &["rev-parse", "HEAD~4"]);
    git(&place.repository(), &["bisect", "start", "HEAD", &good]);
    let line = format!("gate ../gate.toml --base {good} --trust --exit-code bisect");
    let gate = place.command(&line);
    let mut bisect = Command::new("git");
    bisect.args(["bisect", "run"]).arg(gate.get_program()).args(gate.get_args());
    let variables = gate.get_envs().filter_map(|(name, value)| Some((name, value?)));
    bisect.envs(variables).current_dir(place.repository());
    CommandOutput::run(&mut bisect).expect(0).stdout_contains("is the first bad commit");
    let subject = git(&place.repository(), &["show", "--no-patch", "--format=%s", "bisect/bad"]);
    assert_eq!(subject, "change 3");
}

#[test]
fn a_build_ends_with_riops_whether_it_is_interrupted_or_killed() {
    for (signal, code) in [("-TERM", Some(130)), ("-KILL", None)] {
        let place = Place::new(&format!("ends{}", code.unwrap_or(0)), 2, 9, None);
        let fifo = place.folder.join("held");
        CommandOutput::from(Command::new("mkfifo").arg(&fifo).output().unwrap()).expect(0);
        // A descendant of the build holds the pipe open until it is killed.
        let build = format!("build = \"(exec 9>{}; sleep 3600) & wait\"", fifo.display());
        let file = FILE.lines().map(|line| if line.starts_with("build") { &build } else { line });
        let file = file.collect::<Vec<_>>().join("\n");
        std::fs::write(place.folder.join("gate.toml"), file).unwrap();
        let mut riops = place.command("gate ../gate.toml --base HEAD~1 --trust").spawn().unwrap();
        // Returns when the build has opened the other end.
        let mut held = std::fs::File::open(&fifo).unwrap();
        kill(riops.id(), signal);
        assert_eq!(riops.wait().unwrap().code(), code);
        // Returns when no process holds the other end.
        std::io::copy(&mut held, &mut std::io::sink()).unwrap();
    }
}

#[test]
fn the_action_finds_a_base_for_each_event() {
    let folder = folder("action-base");
    let origin = folder.join("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "--quiet", "--initial-branch=main"]);
    let commit = |name: &str| {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        let words = ["commit", "--quiet", "--allow-empty", "-m", name];
        git(&origin, &[identity.as_slice(), &words].concat());
        git(&origin, &["rev-parse", "HEAD"])
    };
    let (first, second) = (commit("first"), commit("second"));
    git(&origin, &["checkout", "--quiet", "-b", "topic"]);
    let (before, pushed) = (commit("before"), commit("pushed"));
    git(&origin, &["checkout", "--quiet", "main"]);
    let tip = commit("of others");
    let base = |base: &str, head: &str| {
        // As actions/checkout leaves it: a detached head, and no origin/HEAD.
        let clone = folder.join("clone");
        let _ = std::fs::remove_dir_all(&clone);
        std::fs::create_dir(&clone).unwrap();
        git(&clone, &["init", "--quiet"]);
        git(&clone, &["remote", "add", "origin", &origin.display().to_string()]);
        git(&clone, &["fetch", "--quiet", "origin", head]);
        git(&clone, &["checkout", "--quiet", "--detach", "FETCH_HEAD"]);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/action/base");
        let output = Command::new(script)
            .current_dir(&clone)
            .envs([("BASE", base), ("HEAD", head), ("DEFAULT_BRANCH", "main")])
            .output()
            .unwrap();
        CommandOutput::from(output).expect(0).stdout.trim().to_owned()
    };
    let none = "0000000000000000000000000000000000000000";
    // A push with a commit before, a new branch, a forced push, and a pull request, whose base has moved on.
    assert_eq!(base(&before, &pushed), before);
    assert_eq!(base(none, &pushed), second);
    assert_eq!(base("1234567890123456789012345678901234567890", &pushed), second);
    assert_eq!(base(&second, &pushed), second);
    // A schedule and a manual run on a branch and on the default branch.
    assert_eq!(base("", &pushed), second);
    assert_eq!(base("", &tip), second);
    assert_eq!(base("", &second), first);
}
