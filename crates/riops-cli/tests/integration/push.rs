//! `--metrics-push`: a receiver of the test, and a real Prometheus if it is installed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use crate::fixture::{CommandOutput, database, folder};

/// Answers each request with the next status, and passes its head on.
fn receiver(statuses: &'static [&'static str]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api/v1/write", listener.local_addr().unwrap());
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for (stream, status) in
            listener.incoming().zip(statuses.iter().chain([&"204 No Content"; 100]))
        {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
            let _ = sender.send(head.to_lowercase());
        }
    });
    (url, received)
}

#[test]
fn each_interval_is_sent_with_the_headers_of_the_protocol_and_again_if_the_receiver_is_busy() {
    let (url, received) = receiver(&["503 Service Unavailable"]);
    let token = folder("push-token").join("token");
    std::fs::write(&token, "0123456789abcdef").unwrap();
    let line = format!(
        "run ping -c 1 --warmup 0 --duration 2s --metrics-push {url} --metrics-push-token-file {}",
        token.display()
    );
    let ran = database("push").riops(&line).expect(0);
    assert!(!ran.stderr.contains("intervals are missing"), "{}", ran.stderr);
    let heads: Vec<String> = received.try_iter().collect();
    // Two intervals and the end, and the first one again.
    assert_eq!(heads.len(), 4);
    for line in [
        "post /api/v1/write http/1.1",
        "content-encoding: snappy",
        "content-type: application/x-protobuf",
        "x-prometheus-remote-write-version: 0.1.0",
        "authorization: bearer 0123456789abcdef",
        "user-agent: riops/",
    ] {
        assert!(heads[0].contains(line), "{line} is not in {}", heads[0]);
    }
}

#[test]
fn a_receiver_that_refuses_changes_nothing_but_a_warning() {
    let (url, _received) = receiver(&["400 Bad Request"]);
    let database = database("push_refused");
    let line = "run ping -c 1 --warmup 0 --duration 2s --metrics-push";
    let refused = database.riops(&format!("{line} {url}")).expect(0);
    refused.stderr_contains("intervals are missing at the receiver of the metrics: 127.0.0.1");
    database
        .riops(&format!("{line} http://127.0.0.1:1/x"))
        .expect(0)
        .stderr_contains("intervals are missing");
    database
        .riops(&format!("{line} ftp://a/b"))
        .expect(2)
        .stderr_contains("is not an address to send metrics to");
}

/// A Prometheus that receives. Ended when dropped.
struct Prometheus(Child, String);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Prometheus {
    fn start(program: &Path) -> Self {
        let folder = folder("prometheus");
        std::fs::write(folder.join("config.yml"), "").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(program)
            .arg("--web.enable-remote-write-receiver")
            .arg(format!("--web.listen-address={address}"))
            .arg(format!("--config.file={}", folder.join("config.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prometheus = Self(child, address);
        while prometheus.get("/-/ready").is_none_or(|answer| !answer.contains("200 OK")) {
            std::thread::yield_now();
        }
        prometheus
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.1).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// Returns the value of a query.
    fn value(&self, query: &str) -> f64 {
        let answer = self.get(&format!("/api/v1/query?query={query}")).unwrap();
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        let reply: Value = serde_json::from_str(body).unwrap();
        let text = &reply["data"]["result"][0]["value"][1];
        text.as_str().unwrap_or_else(|| panic!("{query}: {reply}")).parse().unwrap()
    }
}

/// Answers a query of Prometheus as it does: the share of throttled periods, nothing, or two series.
fn start_answering() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                head.push_str(&line);
                line.clear();
            }
            let sample = r#"{"metric":{},"value":[1700000000.1,"0.25"]}"#;
            let result = match () {
                () if head.contains("throttled") => format!("[{sample}]"),
                () if head.contains("several") => format!("[{sample},{sample}]"),
                () => "[]".to_owned(),
            };
            let body = format!(
                r#"{{"status":"success","data":{{"resultType":"vector","result":{result}}}}}"#
            );
            let length = body.len();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        }
    });
    url
}

#[test]
fn metrics_of_the_server_are_read_from_prometheus() {
    let url = start_answering();
    let line = format!(
        r#"run ping -c 1 --warmup 0 --duration 1s --output json --prometheus {url} --prometheus-server pod="pg" --probe a=promql:several"#
    );
    let record = database("promql").riops(&line).expect(0).json();
    let stage = &record["stages"][0];
    let series = stage["query_series"].as_array().unwrap();
    let named = |name: &str| series.iter().find(|query| query["name"] == name).unwrap();
    assert!(named("server_throttled")["points"].as_array().unwrap().len() >= 2);
    assert_eq!(stage["server_throttled_share"], 0.25);
    assert_eq!(named("node_cpu")["error"], "Prometheus has no such metric");
    assert!(named("a")["error"].as_str().unwrap().contains("returned 2 series, not one"));
    database("promql_refused")
        .riops("run ping --probe a=promql:up")
        .expect(2)
        .stderr_contains("a query for Prometheus needs its address");
}

#[test]
fn a_prometheus_that_does_not_answer_is_asked_only_once_at_the_end() {
    // Connections wait here and are not accepted.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!(
        "run ping -c 1 --warmup 0 --transactions 1 --output json --prometheus http://{} --probe a=promql:up --probe b=promql:up",
        listener.local_addr().unwrap()
    );
    let record = database("promql_silent").riops(&line).expect(0).json();
    for series in record["stages"][0]["query_series"].as_array().unwrap() {
        assert_eq!(series["failures"], 2, "{series}");
        assert_eq!(series["error"], "Prometheus: no answer within 5 s", "{series}");
    }
    listener.set_nonblocking(true).unwrap();
    assert_eq!(std::iter::from_fn(|| listener.accept().ok()).count(), 1);
}

/// The program, if it is installed.
fn installed_prometheus() -> Option<PathBuf> {
    let given = std::env::var_os("TEST_PROMETHEUS").map(PathBuf::from);
    Some(given.unwrap_or_else(|| PathBuf::from("/usr/bin/prometheus"))).filter(|path| path.exists())
}

#[test]
fn prometheus_answers_queries() {
    let Some(program) = installed_prometheus() else { return };
    let prometheus = Prometheus::start(&program);
    let line = format!(
        "run ping -c 1 --warmup 0 --duration 1s --output json --prometheus http://{} --prometheus-server pod=\"pg\" --probe a=promql:vector(42) --probe b=promql:scalar(vector(7)) --probe c=promql:sum(",
        prometheus.1
    );
    let record = database("promql_real").riops(&line).expect(0).json();
    let series = record["stages"][0]["query_series"].as_array().unwrap();
    let values: Vec<_> = series.iter().map(|query| query["points"][0]["value"].as_f64()).collect();
    assert_eq!(values, [Some(42.0), Some(7.0), None, None, None, None, None, None]);
    let errors: Vec<_> = series[2..].iter().map(|query| query["error"].as_str().unwrap()).collect();
    // The queries of riops are valid: there is only nothing that they could find.
    assert_eq!(errors[0], "Prometheus: answered 400 Bad Request");
    assert_eq!(errors[1..], ["Prometheus has no such metric"; 5]);
}

#[test]
fn prometheus_has_the_values_of_the_record() {
    let Some(program) = installed_prometheus() else { return };
    let prometheus = Prometheus::start(&program);
    let url = format!("http://{}/api/v1/write", prometheus.1);
    let line = format!(
        "run ping -c 2 --warmup 0 --duration 3s --label pushed --output json --metrics-push {url}"
    );
    let record =
        CommandOutput::run(&mut database("push_prometheus").command(&line)).expect(0).json();
    let stage = &record["stages"][0];
    let id = record["id"].as_str().unwrap();
    let of_run = format!("{{run=%22{id}%22}}");
    let series = stage["series"].as_array().unwrap();
    assert_eq!(
        prometheus.value(&format!("riops_transactions_total{of_run}")),
        series.iter().map(|point| point["transactions"].as_f64().unwrap()).sum::<f64>()
    );
    let last = series.last().unwrap();
    let quantile = format!("{{run=%22{id}%22,quantile=%220.99%22}}");
    let p99_us = last["p99_us"].as_f64().unwrap();
    let pushed_us = prometheus.value(&format!("riops_service_time_seconds{quantile}")) * 1e6;
    assert!((pushed_us / p99_us - 1.0).abs() < 1e-9, "{pushed_us} {p99_us}");
    // Each interval.
    let count = prometheus.value(&format!("count_over_time(riops_transactions_total{of_run}[1m])"));
    assert!(count >= series.len() as f64, "{count}");
}

/// The texts with this key in a JSON document.
fn texts(value: &Value, key: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.get(key).and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(fields.values().flat_map(|value| texts(value, key))).collect()
        }
        Value::Array(values) => values.iter().flat_map(|value| texts(value, key)).collect(),
        _ => Vec::new(),
    }
}

fn dashboard(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_queries_of_the_dashboard_of_a_store_are_executed_and_its_metrics_exist() {
    let (target, store) = (database("grafana"), database("grafana_store"));
    let mut run = target.command("run ping -c 1 --warmup 0 --duration 500ms --label grafana");
    CommandOutput::run(run.env("RIOPS_STORE", &store.url)).expect(0);
    let queries = texts(&dashboard("store.json"), "rawSql");
    assert_eq!(queries.len(), 7);
    for sql in &queries {
        let sql = sql.replace("$__timeFrom()", "now() - interval '1 hour'");
        let rows = store.connect().query(&sql.replace("$__timeTo()", "now()")).unwrap();
        assert_eq!(rows.is_empty(), !sql.contains("stage_results"), "{sql}");
    }
    let id = "01938f7a-7c00-7000-8000-0123456789ab".parse().unwrap();
    let (plan, start) = (riops::plan::Plan::default(), jiff::Timestamp::UNIX_EPOCH);
    let mut run = riops::record::LiveRun::new(&plan, id, start, "", 1, "");
    let point = riops::record::Point {
        seconds: 1.0,
        transactions: 1,
        backlog: Some(0),
        p50_us: Some(1.0),
        response_p50_us: Some(1.0),
        ..riops::record::Point::default()
    };
    for event in [
        riops::record::RunEvent::Stage { name: "ping".to_owned() },
        riops::record::RunEvent::Point(Box::new(point)),
    ] {
        run.apply(&event);
    }
    let text =
        riops::report::metrics_text(&[run], riops::report::openmetrics::TextFormat::Prometheus);
    let expressions = texts(&dashboard("live.json"), "expr");
    assert_eq!(expressions.len(), 8);
    for expression in expressions {
        let name = expression.split('{').next().unwrap();
        assert!(text.contains(&format!("\n{name}{{")), "{name} is not in\n{text}");
    }
}
