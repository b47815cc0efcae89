//! Response times wherever there is a rate, and the percentile and times of the interval lines.

use crate::fixture::database;

#[test]
fn a_run_with_a_rate_shows_labeled_response_times_everywhere() {
    let database = database("rated");
    database.riops("prepare rows --rows 1000").expect(0);
    // Enough for a p99, at a rate for half a second.
    let closed = "run rows -c 2 --transactions 2500 --warmup 0 --interval 250ms --batch 10";
    let plain = database.riops(&format!("{closed} --print-histogram")).expect(0);
    assert!(plain.stdout.contains("latency in µs, histogram"), "{}", plain.stdout);
    assert!(!plain.stdout.contains("response") && !plain.stderr.contains("response"));
    let list = database.riops("runs list").expect(0).stdout;
    assert!(list.contains(" p99 ") && !list.contains("response"), "{list}");
    let open = format!("{closed} --rate 5000");
    let rated = database.riops(&format!("{open} --print-histogram --percentile 97.5")).expect(0);
    for label in
        ["response time in µs (from the intended start)", "service time in µs (from the send)"]
    {
        assert!(rated.stdout.contains(label), "{}", rated.stdout);
    }
    for text in ["0.25 s  ", "0.50 s  ", "response p50 ", " · p97.5 ", " · service p99 "] {
        assert!(rated.stderr.contains(text), "{text}: {}", rated.stderr);
    }
    let list = database.riops("runs list").expect(0).stdout;
    assert!(list.contains("response p99  service p99"), "{list}");
    let listed = database.riops("runs list --output json").expect(0).json();
    assert!(listed[0]["response_p99_us"].is_f64() && listed[0]["service_p99_us"].is_f64());
    assert_eq!(listed[0]["p99_us"], listed[0]["response_p99_us"]);
    assert!(listed[1]["response_p99_us"].is_null() && listed[1]["service_p99_us"].is_f64());
    let stages = open.replace("--batch 10", "--batch 1,10");
    let table = database.riops(&stages).expect(0).stdout;
    assert!(table.contains("response p50  response p99  service p99"), "{table}");
    let page = database.riops("report -o html").expect(0).stdout;
    assert!(page.contains(">response p99</th>") && page.contains("\"service p99\""), "{page}");
}
