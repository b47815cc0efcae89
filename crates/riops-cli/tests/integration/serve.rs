//! `riops serve`: who may use the dashboard, and what it shows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fixture::{CommandOutput, Database, command, database, folder, start_until};

const HOSTILE: &str = "<script>alert(1)</script>";

/// A response of a server.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends a request exactly as given, which no HTTP library does. `headers` end with a line break. The host is the address,
/// unless they contain another host.
pub(crate) fn request(address: &str, method: &str, path: &str, headers: &str, body: &str) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    // A server that does not answer fails the test.
    stream.set_read_timeout(Some(std::time::Duration::from_mins(2))).unwrap();
    let host =
        if headers.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let reply = String::from_utf8(reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head: head.to_owned(), body: body.to_owned() }
}

/// A dashboard, which ends with the test.
struct Dashboard {
    process: Child,
    address: String,
    /// The line that it printed.
    url: String,
    /// Header with the token of the URL.
    token: String,
}

impl Dashboard {
    fn start(mut command: std::process::Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let address = url.trim().strip_prefix("http://").unwrap().split('/').next().unwrap();
        let token = url.trim().split_once("?token=");
        let token = token.map(|(_, token)| format!("Authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        Self { process, address: address.to_owned(), url: url.trim().to_owned(), token }
    }

    fn start_on(database: &Database, options: &str) -> Self {
        Self::start(database.command(&format!("serve --listen 127.0.0.1:0 {options}")))
    }

    fn get(&self, path: &str) -> Reply {
        request(&self.address, "GET", path, &self.token, "")
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).body).unwrap()
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> Reply {
        request(&self.address, "POST", path, &(self.token.clone() + headers), body)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Stores a short run with a label.
fn store_run(database: &Database, label: &str) -> Value {
    let line = "run ping -c 1 --warmup 0 --transactions 20 --output json";
    let mut command = database.command(line);
    let output = crate::fixture::CommandOutput::run(command.args(["--label", label]));
    output.expect(0).json()
}

#[test]
fn requests_of_other_hosts_and_paths_outside_are_refused() {
    let database = database("serve_refused");
    let dashboard = Dashboard::start_on(&database, "");
    assert_eq!(dashboard.get("/").status, 200);
    for host in ["evil.example", "127.0.0.1.evil.example:80"] {
        let reply =
            request(&dashboard.address, "GET", "/api/runs", &format!("Host: {host}\r\n"), "");
        assert_eq!(reply.status, 421, "{host}");
    }
    let reply = request(&dashboard.address, "GET", "/", "Host: localhost:1\r\n", "");
    assert_eq!(reply.status, 200, "a forwarded port");
    for path in [
        "/assets/../Cargo.toml",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/style.css",
        "/../etc/passwd",
        "/assets//etc/passwd",
        "/etc/passwd",
        "/assets/",
    ] {
        let reply = dashboard.get(path);
        assert_eq!(reply.status, 404, "{path}");
        assert!(!reply.body.contains("root:"), "{path}");
    }
    let style = dashboard.get("/assets/style.css");
    assert!(style.status == 200 && style.head.contains("text/css"), "{}", style.head);
    for policy in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: same-origin",
    ] {
        assert!(style.head.contains(policy), "{policy}: {}", style.head);
    }
    assert_eq!(request(&dashboard.address, "DELETE", "/", "", "").status, 405);
    let large = "x".repeat(100_000);
    assert_ne!(dashboard.post("/runs/last/label", "", &large).status, 200);
}

#[test]
fn other_addresses_need_the_token() {
    let database = database("serve_token");
    let start = |options: &str| {
        Dashboard::start(database.command(&format!("serve --listen 0.0.0.0:0 {options}")))
    };
    let generated = start("");
    let token = generated.url.split_once("?token=").unwrap().1;
    let address = generated.address.replace("localhost", "127.0.0.1");
    let get = |path: &str, headers: &str| request(&address, "GET", path, headers, "");
    for path in ["/", "/api/runs", "/metrics", "/assets/style.css", "/?token=wrong"] {
        assert_eq!(get(path, "").status, 401, "{path}");
    }
    assert_eq!(get("/api/runs", &format!("Authorization: Bearer {token}\r\n")).status, 200);
    let exchanged = get(&format!("/?label=a&token={token}"), "");
    let cookie = exchanged.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(token) && !exchanged.body.contains(token), "{}", exchanged.body);
    let session = cookie.split(';').next().unwrap();
    assert_eq!(get("/", &format!("Cookie: {session}\r\n")).status, 200);
    let given = start("--token 0123456789abcdef");
    assert!(!given.url.contains("token"), "{}", given.url);
    database.riops("serve --token short").expect(2).stderr_contains("at least 16");
}

#[test]
fn changes_need_the_token_even_on_this_machine() {
    let store = folder("serve-edit-token").join("runs.sqlite");
    let start = |options: &str, variables: &[(&str, &str)]| {
        let mut serve = command(&format!("serve --listen 127.0.0.1:0 {options}"));
        serve.env("RIOPS_STORE", &store).envs(variables.iter().copied());
        Dashboard::start(serve)
    };
    let generated = start("--allow-edit", &[]);
    let without = |path: &str| request(&generated.address, "GET", path, "", "").status;
    assert_eq!(
        (without("/"), without("/runs/last/edit"), generated.get("/").status),
        (401, 401, 200)
    );
    let post = request(&generated.address, "POST", "/runs/last/label", "", "label=a");
    assert_eq!(post.status, 401);
    let file = store.with_file_name("token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    let option = format!("--allow-edit --token-file {}", file.display());
    let other = ("RIOPS_TOKEN", "fedcba9876543210");
    for given in
        [start(&option, &[other]), start("--allow-edit", &[("RIOPS_TOKEN", "0123456789abcdef")])]
    {
        assert!(!given.url.contains("token"), "{}", given.url);
        let header = "Authorization: Bearer 0123456789abcdef\r\n";
        assert_eq!(request(&given.address, "GET", "/", header, "").status, 200);
        assert_eq!(given.get("/").status, 401);
    }
    let refused = command("serve --listen 127.0.0.1:0 --token-file /dev/zero").output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("/dev/zero") && error.contains("limit of 4 KiB"), "{error}");
}

#[test]
fn silent_connections_and_a_fifo_block_no_page() {
    let store = folder("serve-blocked").join("runs.sqlite");
    let live = store.with_file_name("runs.sqlite.live");
    std::fs::create_dir(&live).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, live.join("fifo.jsonl"), mode).unwrap();
    std::os::unix::fs::symlink("/dev/zero", live.join("device.jsonl")).unwrap();
    let mut serve = command("serve --listen 127.0.0.1:0");
    serve.env("RIOPS_STORE", &store);
    let dashboard = Dashboard::start(serve);
    let _silent: Vec<_> =
        (0..200).map(|_| TcpStream::connect(&dashboard.address).unwrap()).collect();
    assert_eq!(dashboard.get("/").status, 200);
    assert_eq!(dashboard.json("/api/live"), Value::Array(Vec::new()));
}

#[test]
fn stored_runs_are_listed_shown_and_compared_without_running_their_texts() {
    let database = database("serve_pages");
    let (one, two) = (store_run(&database, HOSTILE), store_run(&database, "plain"));
    let dashboard = Dashboard::start_on(&database, "");
    let ids = [&one, &two].map(|record| record["id"].as_str().unwrap().to_owned());
    let list = dashboard.get("/").body;
    assert!(ids.iter().all(|id| list.contains(id)), "{list}");
    assert!(list.contains("Runs 1 to 2 of 2"), "{list}");
    let pages = [
        format!("/runs/{}", ids[0]),
        format!("/compare?run={}&run={}", ids[0], ids[1]),
        "/history".to_owned(),
        "/history?label=%3Cscript%3Ealert(1)%3C/script%3E".to_owned(),
        "/?label=%3Cscript%3Ealert(1)%3C/script%3E".to_owned(),
        "/?sort=%3Cscript%3E".to_owned(),
        "/runs/%3Cscript%3E".to_owned(),
        "/".to_owned(),
    ];
    for path in &pages {
        let reply = dashboard.get(path);
        assert!(!reply.body.contains("<script>"), "{path}: {}", reply.body);
        assert_eq!(
            reply.status,
            if path.contains("sort") {
                400
            } else if path.contains("runs/%") {
                404
            } else {
                200
            }
        );
    }
    let filtered = dashboard.json("/api/runs?label=plain");
    assert_eq!((filtered.as_array().unwrap().len(), &filtered[0]["id"]), (1, &two["id"]));
    assert_eq!(dashboard.json(&format!("/api/runs/{}", ids[0])), one);
    assert!(dashboard.json("/api/runs/nothing")["error"]["message"].is_string());
    assert_eq!(dashboard.get("/api/runs/nothing").status, 404);
}

#[test]
fn a_dashboard_without_a_store_shows_no_runs_and_finds_them_later() {
    let database = database("serve_later");
    let dashboard = Dashboard::start_on(&database, "");
    assert!(dashboard.get("/").body.contains("No stored runs yet"));
    assert_eq!(dashboard.json("/api/runs"), Value::Array(Vec::new()));
    assert!(!database.store.exists(), "reading does not create a store");
    store_run(&database, "first");
    assert_eq!(dashboard.json("/api/runs").as_array().unwrap().len(), 1);
}

#[test]
fn a_store_that_the_command_line_names_must_exist() {
    let database = database("serve_missing");
    let missing = database.store.with_extension("missing");
    let line = format!("serve --listen 127.0.0.1:0 --store {}", missing.display());
    let error = CommandOutput::run(&mut database.command(&line)).expect(1).stderr;
    assert!(error.contains("there is no store: "), "{error}");
}

#[test]
fn runs_change_only_with_allow_edit_and_only_by_forms_of_the_dashboard() {
    let database = database("serve_edit");
    let id = store_run(&database, "before")["id"].as_str().unwrap().to_owned();
    let (label, remove) = (format!("/runs/{id}/label"), format!("/runs/{id}/remove"));
    let read_only = Dashboard::start_on(&database, "");
    assert_eq!(read_only.get(&format!("/runs/{id}/edit")).status, 403);
    assert_eq!(read_only.post(&label, "", "label=after").status, 403);
    drop(read_only);
    let dashboard = Dashboard::start_on(&database, "--allow-edit");
    let form = dashboard.get(&format!("/runs/{id}/edit")).body;
    let secret = form.split_once("name=\"secret\" value=\"").unwrap().1.split('"').next().unwrap();
    let with_secret = |fields: &str| format!("secret={secret}&{fields}");
    assert_eq!(dashboard.post(&label, "", "label=after").status, 403, "without the secret");
    for header in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        assert_eq!(
            dashboard.post(&label, header, &with_secret("label=after")).status,
            403,
            "{header}"
        );
    }
    assert_eq!(dashboard.json("/api/runs")[0]["label"], "before");
    let own = format!("Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", dashboard.address);
    assert_eq!(dashboard.post(&label, &own, &with_secret("label=after+all")).status, 303);
    let tags = with_secret("tags=a%3D1%0D%0Ab%3Dx+y");
    assert_eq!(dashboard.post(&format!("/runs/{id}/tags"), &own, &tags).status, 303);
    for hostile in ["%1B%5B2J", "%C2%9B2J", "%E2%80%AEcba"] {
        let (hidden, tag) = (format!("label={hostile}"), format!("tags=a%3D{hostile}"));
        assert_eq!(dashboard.post(&label, &own, &with_secret(&hidden)).status, 400, "{hostile}");
        let tags = format!("/runs/{id}/tags");
        assert_eq!(dashboard.post(&tags, &own, &with_secret(&tag)).status, 400, "{hostile}");
    }
    let listed = &dashboard.json("/api/runs")[0];
    assert_eq!((&listed["label"], &listed["tags"]["b"]), (&"after all".into(), &"x y".into()));
    assert_eq!(dashboard.json(&format!("/api/runs/{id}"))["label"], "after all");
    assert_eq!(dashboard.post(&remove, &own, &with_secret("")).status, 400, "not confirmed");
    assert_eq!(dashboard.post(&remove, &own, &with_secret("confirm=yes")).status, 303);
    assert_eq!(dashboard.json("/api/runs"), Value::Array(Vec::new()));
}

#[test]
fn experiments_have_pages_and_their_notes_are_edited() {
    let database = database("serve_experiments");
    let line = "sweep ping --axis sessions=1,2 --repeat 1 --warmup 0 --duration 300ms -q";
    database.riops(line).expect(0);
    database.riops("experiments note last first --author ann").expect(0);
    let dashboard = Dashboard::start_on(&database, "--allow-edit");
    let list = dashboard.get("/experiments").body;
    let id = list.split_once("/experiments&#x2f;").or(list.split_once("experiments&#x2f;"));
    let id = id.unwrap().1.split('"').next().unwrap();
    assert!(
        list.contains("sweep ping") && list.contains("finished") && list.contains("first"),
        "{list}"
    );
    let page = dashboard.get(&format!("/experiments/{id}"));
    assert_eq!(page.status, 200);
    assert!(
        page.body.contains("ann: first") && page.body.contains("2 runs, all valid"),
        "{}",
        page.body
    );
    // In the list of runs, it is a row above its runs.
    let runs = dashboard.get("/").body;
    let row = runs.split_once("<tbody class=\"experiment\"").unwrap().1;
    let (row, below) = row.split_once("</tbody>").unwrap();
    assert!(
        !row.contains("no verdict yet") && row.contains("TPS") && row.contains("2 runs"),
        "{row}"
    );
    assert_eq!(below.matches("name=\"run\"").count(), 2, "{below}");
    assert!(list.contains("TPS"), "{list}");
    let filtered = dashboard.get(&format!("/?tag=experiment%3D{id}")).body;
    assert!(!filtered.contains("class=\"experiment\""), "{filtered}");
    let printed = |line: &str| database.riops(line).expect(0).json();
    assert_eq!(dashboard.json("/api/experiments"), printed("experiments list --output json"));
    let result = dashboard.json(&format!("/api/experiments/{id}"));
    assert_eq!(result, printed("experiments show last --output json"));
    for path in ["/experiments/none", "/api/experiments/none"] {
        assert_eq!(dashboard.get(path).status, 404);
    }
    let form = dashboard.get(&format!("/experiments/{id}/edit")).body;
    let secret = form.split_once("name=\"secret\" value=\"").unwrap().1.split('"').next().unwrap();
    let field = form.split_once("textarea name=\"note-").unwrap().1.split('"').next().unwrap();
    let body = format!("secret={secret}&note-{field}=&was-{field}=first&new=second&author=ben");
    let notes = format!("/experiments/{id}/notes");
    assert_eq!(dashboard.post(&notes, "", "new=second").status, 403, "without the secret");
    assert_eq!(dashboard.post(&notes, "", &body).status, 303);
    let page = dashboard.get(&format!("/experiments/{id}")).body;
    assert!(page.contains("ben: second") && !page.contains("ann: first"), "{page}");
    // A run of it, and its note.
    let run = dashboard.json("/api/runs")[0]["id"].as_str().unwrap().to_owned();
    assert!(
        dashboard.get(&format!("/runs/{run}")).body.contains(&format!("experiments&#x2f;{id}"))
    );
    let body = format!("secret={secret}&new=a+hypothesis");
    assert_eq!(dashboard.post(&format!("/runs/{run}/notes"), "", &body).status, 303);
    assert_eq!(dashboard.json("/api/runs")[0]["note"], "a hypothesis");
    database.riops("experiments list").expect(0).stdout_contains("second");
    let reader = Dashboard::start_on(&database, "");
    assert_eq!(reader.post(&notes, "", &body).status, 403);
}

#[test]
fn a_run_in_progress_streams_its_points_and_ends_with_the_stored_run() {
    let database = database("serve_live");
    let dashboard = Dashboard::start_on(&database, "");
    assert_eq!(dashboard.json("/api/live"), Value::Array(Vec::new()));
    let options = "run ping -c 1 --warmup 0 --duration 5m --interval 100ms --label";
    let mut run = start_until(database.command(options).arg(HOSTILE), "tx/s");
    let running = dashboard.json("/api/live");
    let id = running[0]["id"].as_str().unwrap();
    let page = dashboard.get(&format!("/live/{id}")).body;
    assert!(page.contains("live-phase") && !page.contains("<script>"), "{page}");
    assert!(dashboard.get("/").body.contains(&format!("/live/{id}")));
    assert_eq!(dashboard.get(&format!("/runs/{id}")).status, 303, "not stored yet");
    assert!(dashboard.get("/metrics").body.contains("riops_transactions_total{"));
    let mut stream = TcpStream::connect(&dashboard.address).unwrap();
    let get = format!("GET /api/live/{id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(get.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let data = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let (mut numbers, mut ended) = (Vec::new(), Value::Null);
    for text in data {
        let event: Value = serde_json::from_str(&text).unwrap();
        if event["stored"].is_boolean() {
            ended = event;
            break;
        }
        numbers.extend(
            event["points"]
                .as_array()
                .unwrap()
                .iter()
                .map(|point| point["number"].as_u64().unwrap()),
        );
        if numbers.len() > 3 && run.try_wait().unwrap().is_none() {
            // Ctrl-C: the run stores what was measured.
            kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        }
    }
    run.wait().unwrap();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "each point once and in order");
    assert_eq!(ended["stored"], true);
    assert_eq!(dashboard.get(&format!("/runs/{id}")).status, 200);
    assert_eq!(dashboard.json("/api/live"), Value::Array(Vec::new()));
}

#[test]
fn ctrl_c_ends_the_dashboard_with_success_even_with_an_open_stream() {
    let store = folder("serve-stop").join("runs.sqlite");
    let mut serve = command("serve --listen 127.0.0.1:0");
    serve.env("RIOPS_STORE", &store);
    let mut dashboard = Dashboard::start(serve);
    let _idle = TcpStream::connect(&dashboard.address).unwrap();
    assert_eq!(dashboard.get("/").status, 200);
    kill_process(Pid::from_child(&dashboard.process), Signal::INT).unwrap();
    assert_eq!(dashboard.process.wait().unwrap().code(), Some(0));
}

#[test]
fn the_page_of_an_experiment_in_progress_is_read_again() {
    let database = database("serve_refresh");
    let dashboard = Dashboard::start_on(&database, "");
    let line = "sweep ping --axis sessions=1,2 --repeat 1 --warmup 0 --transactions 30000 --interval 100ms";
    let mut sweep = start_until(&mut database.command(line), "tx/s");
    let running = dashboard.json("/api/live");
    let id = running[0]["tags"]["experiment"].as_str().unwrap();
    let page = dashboard.get(&format!("/experiments/{id}"));
    assert!(page.head.to_lowercase().contains("\nrefresh: 10\r\n"), "{}", page.head);
    sweep.wait().unwrap();
    let page = dashboard.get(&format!("/experiments/{id}"));
    assert!(!page.head.to_lowercase().contains("refresh"), "{}", page.head);
}
