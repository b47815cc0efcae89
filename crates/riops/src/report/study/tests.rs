use super::*;
use crate::report::page::{Delivery, Layout};

#[test]
fn look() {
    let dir = std::path::Path::new("/tmp/study_look");
    std::fs::create_dir_all(dir).unwrap();
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
        let name = &view.name;
        std::fs::write(
            dir.join(format!("{name}.html")),
            html(&view, &Layout::new(name.clone(), Delivery::Inline)).unwrap(),
        )
        .unwrap();
        std::fs::write(dir.join(format!("{name}.md")), markdown(&view)).unwrap();
        std::fs::write(dir.join(format!("{name}.csv")), csv(&view).unwrap()).unwrap();
        std::fs::write(dir.join(format!("{name}.json")), json(&view).unwrap()).unwrap();
        for image in png(&view).unwrap() {
            std::fs::write(dir.join(format!("{name}-{}.png", image.name)), image.bytes).unwrap();
        }
    }
}
