//! riops beside the original sysbench, on the same server.

use crate::fixture::{Database, database, program};
use crate::oltp::sysbench;

/// The values of `k` in sbtest1: their number, mean and standard deviation, and the share of the rows that have one of
/// the most frequent 1,000 values.
fn values_of_k(database: &Database, schema: &str) -> [f64; 4] {
    let sql = format!(
        "with frequent as (select count(*) from {schema}.sbtest1 group by k order by 1 desc limit 1000)
         select concat_ws(' ', count(distinct k), avg(k), stddev(k),
                          (select sum(count) from frequent) / count(*)) from {schema}.sbtest1"
    );
    let numbers = database.value(&sql).unwrap();
    let numbers: Vec<f64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn k_is_distributed_as_in_the_tables_of_sysbench() {
    let Some(path) = program("sysbench") else {
        return;
    };
    let database = database("sysbench_k");
    for kind in ["special", "uniform", "gaussian", "pareto"] {
        let prepare = format!("--rand-type={kind} --tables=1 --table-size=100000");
        sysbench(
            &path,
            &database,
            &format!("oltp_read_write {prepare} --create-secondary=off prepare"),
        );
        database.riops(&format!("prepare oltp {prepare} --recreate")).expect(0);
        let theirs = values_of_k(&database, "public");
        let ours = values_of_k(&database, "riops");
        for (their, our) in theirs.iter().zip(&ours) {
            assert!((our / their - 1.0).abs() < 0.03, "{kind}: {theirs:?}, ours {ours:?}");
        }
        sysbench(&path, &database, &format!("oltp_read_write {prepare} cleanup"));
    }
}
