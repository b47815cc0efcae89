//! Galleries, and the eras of histories.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use riops::host::Interrupt;
use riops::store::{self, StoreLocation};

use crate::fixture::{CommandOutput, command, folder};
use crate::stores::record;

/// Names and addresses that must not be published.
const SECRET: [&str; 3] = ["db7.example.com", "198.51.100.7", "workstation-9"];

/// A folder with a store.
struct Shelf {
    folder: PathBuf,
}

impl Shelf {
    fn new(name: &str) -> Self {
        Self { folder: folder(name) }
    }

    fn store(&self) -> PathBuf {
        self.folder.join("runs.sqlite")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = command(line);
        command.env("RIOPS_STORE", self.store());
        command
    }

    fn riops(&self, line: &str) -> CommandOutput {
        CommandOutput::run(&mut self.command(line))
    }

    /// Makes a stored run not valid.
    fn invalidate(&self, id: &str) {
        let store = store::open(&StoreLocation::File(self.store()), &Interrupt::new()).unwrap();
        let mut record = store.find(id).unwrap();
        record.verdict.valid = false;
        store.remove(id).unwrap();
        store.save(&record).unwrap();
    }

    /// Stores runs with the label `nightly` and these rates, of a client and a server with names. Returns their ids.
    fn add(&self, first: u32, rates: &[f64]) -> Vec<String> {
        let store = store::open(&StoreLocation::File(self.store()), &Interrupt::new()).unwrap();
        let add = |(position, rate): (u32, &f64)| {
            let mut record = record(position);
            record.label = Some("nightly".to_owned());
            SECRET[2].clone_into(&mut record.client.machine.host);
            record.target.address = format!("{}:5433", SECRET[0]);
            record.plan.facts.insert("instance".to_owned(), format!("m{}", position % 2));
            record.tags.insert("why".to_owned(), format!("{} was {}", SECRET[0], SECRET[1]));
            record.stages[0].throughput.rows_per_s = *rate;
            store.save(&record).unwrap();
            record.id.to_string()
        };
        (first..).zip(rates).map(add).collect()
    }
}

fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_gallery_has_pages_and_records_without_hosts() {
    let shelf = Shelf::new("gallery");
    let ids = shelf.add(1, &[1_000.0, 1_010.0, 990.0, 1_005.0]);
    let folder = shelf.folder.join("site");
    let site = folder.display();
    shelf
        .riops(&format!("gallery {site} --compare {} {}", ids[0], ids[1]))
        .expect(0)
        .stdout_contains("4 runs");
    let first = files(&folder);
    let names: Vec<_> = first.iter().map(|(name, _)| name.as_str()).collect();
    for id in &ids {
        for end in ["html", "json"] {
            assert!(names.contains(&format!("runs/{id}.{end}").as_str()), "{names:?}");
        }
    }
    for name in ["index.html", "histories/nightly.html", "assets/gallery.js", "assets/style.css"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("comparisons/")), "{names:?}");
    for (name, text) in &first {
        for secret in SECRET {
            assert!(!text.contains(secret), "{name} has {secret}");
        }
        let page = name.strip_suffix(".html").is_some();
        assert!(!page || !text.contains("src=\"http") && !text.contains("href=\"http"), "{name}");
        // Every address within the site exists.
        let text = text.replace("&#x2f;", "/");
        for address in text.split("href=\"").skip(1).filter(|_| page) {
            let address = address.split(['"', '#']).next().unwrap();
            if address.is_empty() || address.starts_with("data:") {
                continue;
            }
            let from = folder.join(name);
            assert!(from.parent().unwrap().join(address).exists(), "{name}: {address}");
        }
    }
    let index = &first.iter().find(|(name, _)| name == "index.html").unwrap().1;
    assert!(index.contains("instance m0") && index.contains("host-"), "{index}");
    // The records can be imported into another store.
    let other = folder.with_file_name("other.sqlite");
    let line = format!("runs import {site}/runs/{}.json --store {}", ids[0], other.display());
    shelf.riops(&line).expect(0);
}

#[test]
fn a_gallery_replaces_and_removes_only_its_own_files() {
    let shelf = Shelf::new("gallery_again");
    let ids = shelf.add(1, &[1_000.0, 1_010.0, 990.0, 1_005.0]);
    let folder = shelf.folder.join("site");
    let site = folder.display();
    let line = format!("gallery {site} --compare {} {}", ids[0], ids[1]);
    shelf.riops(&line).expect(0);
    // With fewer runs: their pages disappear, a file of another origin stays.
    fs::write(folder.join("CNAME"), "results.example.com\n").unwrap();
    shelf
        .riops(&format!("gallery {site} --fact instance=m0 --with-hosts"))
        .expect(0)
        .stdout_contains("2 runs");
    let names: Vec<_> = files(&folder).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"CNAME".to_owned()));
    assert!(!names.contains(&format!("runs/{}.html", ids[0])), "{names:?}");
    assert!(names.contains(&format!("runs/{}.html", ids[1])), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("comparisons/")), "{names:?}");
    let page = fs::read_to_string(folder.join(format!("runs/{}.html", ids[1]))).unwrap();
    assert!(page.contains("db7.example.com"));

    // A page that would replace a file of another origin is refused.
    fs::create_dir_all(folder.join("comparisons")).unwrap();
    let own = folder.join("histories/own.html");
    fs::write(&own, "mine").unwrap();
    let mut tag = shelf.command("runs tag");
    CommandOutput::run(tag.args([&ids[0], "--label", "own"])).expect(0);
    let mut tag = shelf.command("runs tag");
    CommandOutput::run(tag.args([&ids[1], "--label", "own"])).expect(0);
    let refused = shelf.riops(&format!("gallery {site}")).expect(2);
    refused.stderr_contains("histories/own.html exists, and riops did not write it");
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");

    // A folder of another origin is refused.
    let foreign = shelf.folder.join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("index.html"), "mine").unwrap();
    let line = format!("gallery {}", foreign.display());
    shelf.riops(&line).expect(2).stderr_contains("is not empty, and no gallery");
    assert_eq!(fs::read_to_string(foreign.join("index.html")).unwrap(), "mine");
    shelf
        .riops(&format!("gallery {site} --label none"))
        .expect(2)
        .stderr_contains("no run matches");
}

#[test]
fn a_gate_on_a_history_is_red_until_the_change_is_acknowledged() {
    let shelf = Shelf::new("history_gate");
    let level = |rate: f64| (0..8).map(move |at| rate * (1.0 + f64::from(at % 3) / 500.0));
    let mut rates: Vec<f64> = level(1_000.0).chain(level(900.0)).collect();
    let ids = shelf.add(1, &rates);
    let gate = "runs history --label nightly --gate --figure rows";
    let red = shelf.riops(gate).expect(1);
    red.stdout_contains("SLOWER: if this is intended, riops runs ack");
    shelf.riops("runs history --label nightly --figure rows").expect(0);
    let mut ack = shelf.command("runs ack");
    ack.args([&ids[8], "new hardware", "--author", "ann"]);
    CommandOutput::run(&mut ack).expect(0).stdout_contains("a new era: new hardware");
    shelf
        .riops(gate)
        .expect(0)
        .stdout_contains("8 of the 12 runs needed since the last accepted change");
    let record = shelf.riops(&format!("runs show {} --output json", ids[8])).expect(0).json();
    assert_eq!(record["notes"][0]["author"], "ann");
    // A newer run that is not valid is not good news, and begins no era.
    let invalid = shelf.add(30, &[900.0]);
    shelf.invalidate(&invalid[0]);
    shelf.riops(gate).expect(99).stderr_contains("1 newer run not done or not valid");
    shelf.riops(&format!("runs ack {} why", invalid[0])).expect(2);
    shelf.riops(&format!("runs rm {} --yes", invalid[0])).expect(0);
    rates = level(900.0).collect();
    shelf.add(17, &rates);
    let green = shelf.riops(gate).expect(0);
    green.stdout_contains("new hardware").stdout_contains("not slower");
}
