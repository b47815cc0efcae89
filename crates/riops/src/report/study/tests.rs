use super::*;

#[test]
fn look() {
    for study in [
        example::batch_size(5),
        example::nodes(6),
        example::memory_to_disk(3),
        example::with_failures(),
        example::ab(3, 1.05),
    ] {
        let view = view(&study);
        for width in [80, 120] {
            eprintln!("=== {width}\n{}", text(&view, width));
        }
    }
}
