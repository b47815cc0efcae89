//! The scripts of sysbench, known by their contents. Their texts are not part of riops, which has no Lua.

use sha2::{Digest, Sha256};

/// The script that most of the others load.
pub const COMMON_SCRIPT: &str = "oltp_common";

/// Each script with the first 64 bits of the SHA-256 of its text after the `#!` line, of each version: 1.0.0 to 1.0.20, the
/// development branch of 2026-11, and the variant of YugabyteDB.
#[rustfmt::skip]
const SCRIPTS: &[(&str, &[u64])] = &[
    ("bulk_insert", &[0xaa30_3c46_d71f_2200, 0xdc99_654a_427f_59b0]),
    ("idleconnection", &[0x1383_374f_50bf_eefa]),
    ("oltp_common", &[
        0x02f2_cbba_cbab_e666,
        0x39de_6451_3c84_0eb1,
        0x4aa6_fff6_e2f3_a0bb,
        0x710c_3b38_0276_68c8,
        0x82f8_0be2_29e5_d565,
        0xa677_d42d_04c6_dbba,
        0xd702_2dad_0cd1_3497,
        0xd7da_b10a_f3b3_a088,
        0xe67f_8dba_14e7_3f35,
    ]),
    ("oltp_delete", &[
        0x0f66_a3cc_6547_2696,
        0xa04a_7cd0_6b7d_f3d6,
        0xe225_ef71_64cc_1f7d,
    ]),
    ("oltp_insert", &[
        0x2fbb_4b55_b5b6_74dc,
        0x41e9_48b4_b510_4c38,
        0x4723_0a71_8f05_2c49,
        0x6642_7a9c_d479_8878,
        0x8b1f_a852_cecb_d6ac,
    ]),
    ("oltp_join", &[0xc1b5_648b_b9a1_5289]),
    ("oltp_multi_insert", &[0xc12e_02a8_b106_102d]),
    ("oltp_multi_value_insert", &[0xb416_6c29_25d5_98b0]),
    ("oltp_point_select", &[0x8366_c325_30f6_e84d, 0xa8df_4479_3550_2a9c]),
    ("oltp_primarykey_scan", &[0x1a44_5a9a_267a_65df]),
    ("oltp_read_only", &[0x2e85_a293_4657_43ec, 0xaaeb_9bef_63c5_cfa1]),
    ("oltp_read_write", &[0x7896_a91b_452a_24e7, 0x7ced_a19d_9654_c68f]),
    ("oltp_sequential_scan", &[0x68ad_b084_5998_beb8]),
    ("oltp_simple_ranges", &[0x8f67_a83a_73b5_7497]),
    ("oltp_sum_scan", &[0xa222_2083_c4d6_b063]),
    ("oltp_update_index", &[0x1e1c_5b75_585e_a36a, 0xee08_292a_90b0_02de]),
    ("oltp_update_non_index", &[0x1d61_fe0c_0109_d3fb, 0x9f80_2610_b8f3_8d1b]),
    ("oltp_write_only", &[0x7db9_a435_60b3_50a0, 0xe06b_e71d_5aac_f5fb]),
    ("select_one", &[0x828e_5082_81f2_3063]),
    ("select_random_points", &[0x4367_2ad6_cae6_1b6c, 0xdea0_5906_1633_59d8]),
    ("select_random_ranges", &[0x5bf0_eeb4_da52_7320, 0x6bb9_ee3b_66f2_8ef2]),
];

/// Returns the name of the script of sysbench with this text; `None` for any other text.
pub fn stock_script(text: &str) -> Option<&'static str> {
    let digest = of_contents(text);
    SCRIPTS.iter().find(|(_, versions)| versions.contains(&digest)).map(|(name, _)| *name)
}

/// Returns the digest of a script. Distributions change the path after `#!`.
fn of_contents(text: &str) -> u64 {
    let contents = match text.strip_prefix("#!") {
        Some(rest) => rest.split_once('\n').map_or("", |(_, contents)| contents),
        None => text,
    };
    let digest = Sha256::digest(contents.as_bytes());
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::OltpTest;

    #[test]
    fn the_digest_has_no_path_of_an_interpreter() {
        // The beginning of the SHA-256 of an empty text.
        assert_eq!(of_contents(""), 0xe3b0_c442_98fc_1c14);
        assert_eq!(of_contents("#!/usr/bin/env sysbench\n"), of_contents(""));
        assert_eq!(of_contents("#!/usr/bin/sysbench\n-- x\n"), of_contents("-- x\n"));
        assert_ne!(of_contents("-- x\n"), of_contents("-- y\n"));
        assert_eq!(stock_script(""), None);
    }

    #[test]
    fn each_built_in_test_of_sysbench_is_known_and_no_text_belongs_to_two() {
        let known = |name: &str| SCRIPTS.iter().any(|(script, _)| *script == name);
        // Its file is empty in the variant of YugabyteDB.
        let all = OltpTest::sysbench_names().filter(|name| *name != "oltp_index_scan");
        assert_eq!(all.filter(|name| !known(name)).collect::<Vec<_>>(), [""; 0]);
        let mut digests: Vec<u64> =
            SCRIPTS.iter().flat_map(|(_, all)| all.iter().copied()).collect();
        digests.sort_unstable();
        assert!(digests.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
