//! The command lines of ysql-bench and PGIO, and programs with the names of the tools.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::fixture::{CommandOutput, binary, database, folder, sysbench_server};

#[test]
fn ysql_bench_runs_its_operations_and_prints_its_block() {
    let database = database("ysql_bench");
    let run = |line: &str| {
        let mut command = database.command(&format!("ysql-bench {line}"));
        command.env("YSQLBENCH_URL", &database.url);
        CommandOutput::run(command.env_remove("RIOPS_DATABASE"))
    };
    let loads =
        run("-o insert,copy_mem,procedure -r 500 -t 2 -b 50 -f 9 -p --show-rowsize").expect(0);
    let lines = |name: &str| {
        let with_name = loads.stdout.lines().filter(|line| line.starts_with(name));
        with_name.map(|line| line.split_once(':').unwrap().1.trim().to_owned()).collect::<Vec<_>>()
    };
    for operation in [">> insert", ">> copy_mem", ">> procedure"] {
        assert!(loads.stdout.lines().any(|line| line == operation), "{}", loads.stdout);
    }
    // `-r` is the number of rows of each thread.
    assert_eq!(lines("total rows"), ["1000"; 3]);
    assert_eq!(lines("rows per thread"), ["500"; 3]);
    assert_eq!(
        (lines("threads"), lines("batch")),
        (vec!["2".to_owned(); 3], vec!["50".to_owned(); 3])
    );
    assert_eq!(
        (lines("nontransactional")[0].as_str(), lines("no_prepared")[0].as_str()),
        ("false", "false")
    );
    assert!(lines("wallclock time")[0].ends_with(" sec") && lines("db tm/row")[0].ends_with(" us"));
    assert!(loads.stdout.contains("histogram is per batch (50 rows)"), "{}", loads.stdout);
    assert_eq!(database.value("select count(*) from riops.test_table").as_deref(), Some("1000"));
    assert_eq!(
        database.value("select max(length(f4)) from riops.test_table").as_deref(),
        Some("9")
    );
    let refused = run("-o insert --rows many").expect(1);
    assert!(refused.stderr.contains("--rows"), "{}", refused.stderr);
}

#[test]
fn pgio_runs_its_scripts_and_prints_its_report() {
    let database = database("pgio_scripts");
    let place = folder("pgio_scripts");
    let conf = place.join("pgio.conf");
    let text = format!(
        "UPDATE_PCT=10\nRUN_TIME=1\nNUM_SCHEMAS=2\nNUM_THREADS=1\nWORK_UNIT=16\nUPDATE_WORK_UNIT=8\nSCALE=1024\nCONNECT_STRING=\"{}\"\n",
        database.url
    );
    std::fs::write(&conf, text).unwrap();
    let pgio = |script: &str| {
        let mut command = database.command(&format!("pgio {script}"));
        CommandOutput::run(command.arg(&conf).env_remove("RIOPS_DATABASE").current_dir(&place))
    };
    pgio("run").expect(1);
    pgio("setup").expect(0);
    // The script replaces the tables of an earlier setup.
    pgio("setup.sh").expect(0);
    let report = pgio("run").expect(0).stdout;
    let detail = std::fs::read_to_string(place.join("pgio_session_detail.out")).unwrap();
    assert!(detail.lines().count() == 4 && report.contains(&detail), "{detail}");
    let after = |start: &str| {
        let line = report.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("{start}: {report}")).to_owned()
    };
    assert!(after("Date: ").contains(" UTC 20"), "{report}");
    assert_eq!(after("Database connect string: "), "\"pgio_scripts\".");
    assert!(after("Shared buffers: ").ends_with("MB."), "{report}");
    let testing = "2 schemas with 1 thread(s) accessing 8M (1024 blocks) of each schema.";
    assert_eq!(after("Testing "), testing);
    // The table of the sessions, as psql prints it.
    let table: Vec<&str> = report.lines().skip_while(|line| !line.contains("mypid |")).collect();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(cells(table[0])[..3], ["mypid", "loop_iterations", "sql_selects"]);
    let sessions: Vec<Vec<String>> = table[2..4].iter().map(|line| cells(line)).collect();
    for session in &sessions {
        let cell = |column: usize| session[column].parse::<u64>().unwrap();
        assert_eq!((session.len(), cell(1)), (8, cell(2) + cell(3)), "{session:?}");
        assert!(cell(6) >= 16 * cell(2), "a select touches at least its rows: {session:?}");
    }
    assert_eq!(table[4], "(2 rows)");
    let counters = |moment: &str| {
        let line = after(moment);
        line.split('|').skip(1).map(|cell| cell.trim().parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let (before, later) = (counters("BEFORE:"), counters("AFTER:"));
    assert!(before.len() == 5 && later[0] > before[0] && later[4] > before[4], "{report}");
    let last = report.lines().last().unwrap();
    let (start, rates) = last.split_once("RIOPS >").unwrap();
    assert_eq!(start, "DBNAME:  pgio_scripts. 2 schemas, 1 threads(each). Run time: 1 seconds. ");
    let (riops, hits) = rates.split_once("< CACHE_HITS/s >").unwrap();
    assert!(riops.parse::<u64>().is_ok() && hits.trim_end_matches('<').parse::<u64>().unwrap() > 0);
}

#[test]
fn a_link_with_the_name_of_a_tool_behaves_as_the_tool() {
    let directory = folder("names");
    for (name, arguments, text) in [
        ("sysbench", &["--version"][..], "sysbench 1.0.20 (riops "),
        ("ysql-bench", &["--help"], "--runtime-select"),
        ("pgio", &["help"], "Usage: riops pgio setup"),
    ] {
        let link = directory.join(name);
        symlink(binary(), &link).unwrap();
        let output = CommandOutput::run(Command::new(&link).args(arguments)).expect(0);
        assert!(output.stdout.contains(text), "{name}: {}", output.stdout);
    }
    let script = directory.join("runit.sh");
    symlink(binary(), &script).unwrap();
    let output = CommandOutput::run(Command::new(&script).current_dir(&directory)).expect(1);
    assert!(output.stderr.contains("cannot read pgio.conf"), "{}", output.stderr);
}

#[test]
fn the_password_of_sysbench_is_not_in_the_process_title() {
    let database = database("sysbench_title");
    let server = sysbench_server(&database);
    let sysbench = |line: &str| {
        let mut command = database.command("sysbench");
        command.args(&server).args(line.split_whitespace());
        command
    };
    CommandOutput::run(&mut sysbench("oltp_read_only --table-size=100 prepare")).expect(0);
    let run = "oltp_read_only --table-size=100 --time=60 --report-interval=1 run";
    let mut command = sysbench(run);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    // The first interval: the run is in progress.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("[ 1s ]"))).unwrap().unwrap();
    let title = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
    let title = String::from_utf8_lossy(&title).into_owned();
    let password = server.iter().find_map(|word| word.strip_prefix("--pgsql-password=")).unwrap();
    assert!(!title.contains(password) && title.contains("--pgsql-user"), "{title}");
    crate::crash::kill(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
