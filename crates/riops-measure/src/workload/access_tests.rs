use super::*;
use riops_testkit::VERSION;
use serde_json::json;

fn access(expected: AccessPath) -> Access {
    Access {
        statement: "read_0001".to_owned(),
        sql: "select $1 where k < $2".to_owned(),
        arguments: vec!["1".to_owned(), "10".to_owned()],
        rows: 10,
        expected,
        dialect: Dialect::default(),
        parallel_allowed: false,
    }
}

fn index_of(table: &str, name: &str) -> Index {
    Index { table: table.to_owned(), name: name.to_owned() }
}

fn index() -> Index {
    index_of("rows_0001", "rows_0001_asc_mykey")
}

fn index_scan() -> Access {
    access(AccessPath::IndexScan(index()))
}

fn scan(kind: &str) -> Value {
    json!({"Node Type": kind, "Relation Name": "rows_0001", "Index Name": "rows_0001_asc_mykey",
           "Index Cond": "((mykey >= $1) AND (mykey <= $2))"})
}

fn plan(inner: &Value) -> String {
    json!([{"Plan": {"Node Type": "Aggregate", "Plans": [inner]}}]).to_string()
}

#[test]
fn recognizes_the_expected_scan() {
    let finding = index_scan().judge(&plan(&scan("Index Scan")));
    assert!(finding.is_expected);
    assert_eq!(
        finding.outline,
        "Aggregate\n  Index Scan using rows_0001_asc_mykey on rows_0001, ((mykey >= $1) AND (mykey <= $2))"
    );
}

#[test]
fn rejects_every_other_access_path() {
    let seq =
        json!({"Node Type": "Seq Scan", "Relation Name": "rows_0001", "Filter": "(mykey >= 1)"});
    let bitmap = json!({"Node Type": "Bitmap Heap Scan", "Relation Name": "rows_0001",
        "Plans": [{"Node Type": "Bitmap Index Scan", "Index Name": "rows_0001_asc_mykey", "Index Cond": "x"}]});
    let mut other_index = scan("Index Scan");
    other_index["Index Name"] = json!("other");
    let mut whole_index = scan("Index Scan");
    whole_index.as_object_mut().unwrap().remove("Index Cond");
    let two = json!({"Node Type": "Append", "Plans": [scan("Index Scan"), scan("Index Scan")]});
    for inner in [seq, bitmap, other_index, whole_index, two, scan("Index Only Scan"), json!(null)]
    {
        assert!(!index_scan().judge(&plan(&inner)).is_expected, "{inner}");
    }
    assert!(!index_scan().judge("Index Scan").is_expected);
}

#[test]
fn rejects_parallel_plans_unless_allowed() {
    let mut aware = scan("Index Scan");
    aware["Parallel Aware"] = json!(true);
    let over = |kind: &str, below: Value| json!({"Node Type": kind, "Plans": [below]});
    let serial = Access { parallel_allowed: false, ..index_scan() };
    let any = Access { parallel_allowed: true, ..index_scan() };
    for inner in [
        over("Gather", scan("Index Scan")),
        over("Gather Merge", scan("Index Scan")),
        over("Gather", aware.clone()),
        aware.clone(),
    ] {
        assert!(!serial.judge(&plan(&inner)).is_expected, "{inner}");
        assert!(any.judge(&plan(&inner)).is_expected, "{inner}");
    }
    let outline = serial.judge(&plan(&over("Gather", aware.clone()))).outline;
    assert!(outline.starts_with("Aggregate\n  Gather\n    Parallel Index Scan using"), "{outline}");
    aware["Parallel Aware"] = json!(false);
    assert!(serial.judge(&plan(&aware)).is_expected);
}

#[test]
fn an_index_only_scan_must_not_fetch_from_the_heap_unless_allowed() {
    let with = |heap_fetches_allowed| {
        access(AccessPath::IndexOnlyScan { index: index(), heap_fetches_allowed })
    };
    assert!(with(false).judge(&plan(&scan("Index Only Scan"))).is_expected);
    assert!(!with(false).judge(&plan(&scan("Index Scan"))).is_expected);
    let mut fetching = scan("Index Only Scan");
    fetching["Heap Fetches"] = json!(7);
    let finding = with(false).judge(&plan(&fetching));
    assert!(!finding.is_expected && finding.outline.ends_with(", Heap Fetches: 7"));
    assert!(with(true).judge(&plan(&fetching)).is_expected);
}

#[test]
fn an_update_must_find_its_rows_through_the_index() {
    let access = access(AccessPath::UpdateByIndex(index()));
    let update = json!({"Node Type": "Aggregate", "Plans": [
        {"Node Type": "ModifyTable", "Operation": "Update", "Relation Name": "rows_0001",
         "Plans": [scan("Index Scan")]},
        {"Node Type": "CTE Scan", "CTE Name": "updated"}]});
    assert!(access.judge(&plan(&update)).is_expected);
    assert!(!access.judge(&plan(&scan("Index Scan"))).is_expected);
    assert!(!index_scan().judge(&plan(&update)).is_expected);
}

#[test]
fn reads_the_storage_requests_of_yugabytedb() {
    let access = Access { dialect: Dialect::from_version(VERSION), ..index_scan() };
    assert_eq!(
        access.explain_sql(true),
        "explain (analyze, dist, format json, costs off) execute \"read_0001\"(1, 10)"
    );
    let mut node = scan("Index Scan");
    node["Storage Table Read Requests"] = json!(1);
    node["Storage Index Read Requests"] = json!(1);
    let document = json!([{"Plan": {"Node Type": "Aggregate", "Plans": [node]},
        "Storage Read Requests": 2, "Storage Rows Scanned": 20}]);
    let finding = access.judge(&document.to_string());
    assert!(finding.is_expected);
    let expected = StorageRequests { reads: 2, rows_scanned: Some(20), rows: 10 };
    assert_eq!(finding.storage, Some(expected));
    // ANALYZE would execute the update.
    let update = Access { expected: AccessPath::UpdateByIndex(index()), ..access };
    assert!(!update.explain_sql(true).contains("analyze"));
}

#[test]
fn an_execution_is_explained_with_its_values_and_must_keep_its_plan() {
    let values = ["'7'".to_owned(), "null".to_owned()];
    let sql = "select * from t where a = $1 and b = $2";
    let mut executed = Executed::with_values("command 1", sql, &values, true);
    assert_eq!(
        executed.explain_sql(),
        "explain (format json, costs off) execute \"command 1\"('7', null)"
    );
    // The plan is judged by its nodes: conditions contain the values.
    let with_condition = |condition: &str| {
        let mut node = scan("Index Scan");
        node["Index Cond"] = json!(condition);
        plan(&node)
    };
    let finding = executed.judge(&with_condition("(a = 7)")).unwrap();
    let shape = "Aggregate\n  Index Scan using rows_0001_asc_mykey on rows_0001";
    assert_eq!((finding.is_expected, finding.outline.as_str()), (true, shape));
    assert!(executed.judge(&with_condition("(a = $1)")).unwrap().is_expected);
    assert!(!executed.judge(&with_condition("")).unwrap().is_expected, "the whole index");
    let seq = json!({"Node Type": "Seq Scan", "Relation Name": "rows_0001"});
    let changed = executed.judge(&plan(&seq)).unwrap();
    assert_eq!((changed.is_expected, changed.first.as_deref()), (false, Some(shape)));
    assert_eq!(executed.judge("[]"), None);
    // Its prepared statement may be gone.
    assert!(executed.forget_name() && !executed.forget_name());
    let text = "explain (format json, costs off) select * from t where a = '7' and b = null";
    assert_eq!(executed.explain_sql(), text);
}

#[test]
fn explains_the_prepared_statement_or_its_text() {
    assert_eq!(
        index_scan().explain_sql(true),
        "explain (format json, costs off) execute \"read_0001\"(1, 10)"
    );
    assert_eq!(
        index_scan().explain_sql(false),
        "explain (format json, costs off) select 1 where k < 10"
    );
}

#[test]
fn distinguishes_the_access_paths_of_sysbench_statements() {
    let Index { table, name } = index();
    let modify = |operation: &str| {
        json!({"Node Type": "ModifyTable", "Operation": operation, "Relation Name": table,
            "Plans": [scan("Index Scan")]})
    };
    let delete = access(AccessPath::DeleteByIndex(index()));
    assert!(delete.judge(&plan(&modify("Delete"))).is_expected);
    assert!(!delete.judge(&plan(&modify("Update"))).is_expected);
    let seq = json!({"Node Type": "Seq Scan", "Relation Name": table});
    let full_scan = access(AccessPath::SeqScan { table: table.clone() });
    assert!(full_scan.judge(&plan(&seq)).is_expected);
    assert!(!full_scan.judge(&plan(&scan("Index Scan"))).is_expected);
    let range = json!({"Node Type": "Bitmap Index Scan", "Index Name": name, "Index Cond": "x"});
    let heap = |below: Value| json!({"Node Type": "Bitmap Heap Scan", "Relation Name": table, "Plans": [below]});
    let bitmap = access(AccessPath::BitmapScan(index()));
    let several = json!({"Node Type": "BitmapOr", "Plans": [range, range]});
    assert!(bitmap.judge(&plan(&heap(several))).is_expected);
    assert!(bitmap.judge(&plan(&heap(range.clone()))).is_expected);
    let mut other = range;
    other["Index Name"] = json!("other");
    assert!(!bitmap.judge(&plan(&heap(other))).is_expected);
    assert!(!bitmap.judge(&plan(&seq)).is_expected);
    let join = access(AccessPath::JoinByIndex([index(), index_of("u", "u_pkey")]));
    let mut inner = scan("Index Scan");
    (inner["Relation Name"], inner["Index Name"]) = (json!("u"), json!("u_pkey"));
    let both = |one: Value, other: Value| json!({"Node Type": "Merge Join", "Plans": [one, other]});
    assert!(join.judge(&plan(&both(inner.clone(), scan("Index Scan")))).is_expected);
    assert!(!join.judge(&plan(&both(inner.clone(), inner.clone()))).is_expected);
    assert!(!join.judge(&plan(&both(inner, seq))).is_expected);
}

#[test]
fn an_insert_must_not_read_a_table() {
    let insert = access(AccessPath::Insert { table: "t".to_owned() });
    let plan = |table: &str, below: Value| {
        let node = json!({"Node Type": "ModifyTable", "Operation": "Insert",
            "Relation Name": table, "Plans": [below]});
        json!([{ "Plan": node }]).to_string()
    };
    let values = json!({"Node Type": "Values Scan", "Alias": "*VALUES*"});
    let scan = json!({"Node Type": "Seq Scan", "Relation Name": "u"});
    assert!(insert.judge(&plan("t", values.clone())).is_expected);
    assert!(insert.judge(&plan("t", json!({"Node Type": "ProjectSet"}))).is_expected);
    assert!(!insert.judge(&plan("other", values)).is_expected);
    assert!(!insert.judge(&plan("t", scan)).is_expected);
    // EXPLAIN does not execute the insert.
    assert!(insert.explain_sql(true).starts_with("explain (format json"));
}

#[test]
fn yugabytedb_changes_a_row_with_a_known_primary_key_without_a_scan() {
    let plan = |operation: &str, table: &str| {
        let result = json!({"Node Type": "Result"});
        let node = json!({"Node Type": "ModifyTable", "Operation": operation,
            "Relation Name": table, "Plans": [result]});
        json!([{ "Plan": node }]).to_string()
    };
    let change = |index: &str, dialect| Access {
        dialect,
        ..access(AccessPath::UpdateByIndex(index_of("t", index)))
    };
    let update = change("t_pkey", Dialect::from_version(VERSION));
    assert!(update.judge(&plan("Update", "t")).is_expected);
    assert!(!update.judge(&plan("Delete", "t")).is_expected);
    assert!(!update.judge(&plan("Update", "other")).is_expected);
    // Only the primary key is part of the row's address.
    assert!(!change("t_k", Dialect::from_version(VERSION)).judge(&plan("Update", "t")).is_expected);
    assert!(!change("t_pkey", Dialect::default()).judge(&plan("Update", "t")).is_expected);
    // Older releases have another name for a scan of the whole table.
    let seq = json!({"Node Type": "YB Seq Scan", "Relation Name": "t"});
    let full_scan = access(AccessPath::SeqScan { table: "t".to_owned() });
    assert!(full_scan.judge(&json!([{ "Plan": seq }]).to_string()).is_expected);
}

/// The plan of a job of Citus with these plans of its tasks, the first of which is shown.
fn citus(tasks: u64, shown: &Value) -> String {
    json!([{"Plan": {"Node Type": "Custom Scan", "Custom Plan Provider": "Citus Adaptive",
        "Distributed Query": {"Job": {"Task Count": tasks, "Tasks Shown": "All",
            "Tasks": [{"Node": "host=a", "Remote Plan": [[{"Plan": shown}]]}]}}}}])
    .to_string()
}

#[test]
fn the_plan_of_a_task_of_citus_is_the_plan_of_the_statement() {
    let mut shard = scan("Index Scan");
    shard["Relation Name"] = json!("rows_0001_102008");
    shard["Index Name"] = json!("rows_0001_asc_mykey_102008");
    let finding = index_scan().judge(&citus(1, &shard));
    assert!(finding.is_expected, "{}", finding.outline);
    assert_eq!(
        finding.outline,
        "Index Scan using rows_0001_asc_mykey on rows_0001, ((mykey >= $1) AND (mykey <= $2))"
    );
    // Several tasks are not the statement of one shard, and are shown as such.
    let finding = index_scan().judge(&citus(32, &shard));
    assert!(finding.outline.starts_with("Custom Scan\n  Index Scan using"), "{}", finding.outline);
    let seq = json!({"Node Type": "Seq Scan", "Relation Name": "rows_0001_102008"});
    assert!(!index_scan().judge(&citus(1, &seq)).is_expected);
    let update = access(AccessPath::UpdateByIndex(index()));
    let node = json!({"Node Type": "ModifyTable", "Operation": "Update",
        "Relation Name": "rows_0001_102008", "Plans": [shard]});
    assert!(update.judge(&citus(1, &node)).is_expected);
}
