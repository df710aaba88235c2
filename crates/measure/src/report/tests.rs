use std::fs;

use serde_json::json;

use super::{Bars, Page, Plot, Scale, Series, Table, replace};

/// Fails unless all tags are closed in order. Elements that are never closed are left out.
pub(super) fn check_tags(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let style = html.find("<style>").unwrap() + 7..html.find("</style>").unwrap();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        let name = tag.split([' ', '/', '\n']).find(|word| !word.is_empty()).unwrap_or_default();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag} at {}", &rest[start..end + 1]);
        } else if !tag.ends_with('/') && !["!DOCTYPE", "meta"].contains(&name) {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && !html[style].contains('<'), "{open:?} are open");
}

fn plot() -> Plot {
    let ours = Series::line("ours & <theirs>", vec![(100.0, 2.0), (10.0, 1.0), (0.0, f64::NAN)]);
    let theirs = Series::points("theirs", vec![(10.0, 3.0)]);
    Plot { series: vec![ours, theirs], ..Plot::new("a < b", "players", "µs") }
}

fn page() -> Page {
    let mut page = Page::new("rooms <script>alert(1)</script>");
    page.machine([("cpu", json!("a \"fast\" one")), ("load", json!(0.25))]);
    page.warning("the machine is not quiet: a & b");
    let mut table = Table::new(["figure", "value"]);
    table.values([&json!("sync_us_p50"), &json!(1.234)]);
    table.values([&json!("nothing"), &json!(null)]);
    page.table(&table);
    let mut bars = Bars::new("part", "%");
    bars.bar("send", 0.536);
    bars.bar("none", f64::NAN);
    page.bars(&bars);
    page.plot(&plot());
    for scales in [
        [Scale::Logarithmic, Scale::Linear],
        [Scale::Percentiles, Scale::Linear],
        [Scale::Linear, Scale::Logarithmic],
        [Scale::Logarithmic, Scale::Logarithmic],
    ] {
        page.plot(&Plot { scales, ..plot() });
    }
    page.plot(&Plot::new("empty", "x", "y"));
    page
}

#[test]
fn a_page_is_well_formed_and_loads_nothing() {
    let html = page().html();
    check_tags(&html);
    for loads in ["http://", "https://", "src=", "href=", "url(", "@import", "<script"] {
        assert!(!html.contains(loads), "{loads}");
    }
    assert!(html.contains("rooms &lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(html.contains("ours &amp; &lt;theirs&gt;"));
    assert_eq!(html.matches("<svg ").count(), 5, "a plot without points is left out");
}

#[test]
fn both_color_schemes_color_all_text_and_lines() {
    let html = page().html();
    assert!(html.contains("color-scheme: light dark"));
    assert!(html.contains("@media (prefers-color-scheme: dark)"));
    let plots = &html[html.find("<svg ").unwrap()..];
    assert!(plots.contains("fill=\"currentColor\"") && plots.contains("class=\"s0\""));
    assert!(plots.contains("class=\"f1\""));
    assert!(!plots.contains("=\"#"), "a color that no scheme changes");
}

#[test]
fn figures_are_those_of_the_record() {
    let html = page().html();
    assert!(html.contains("<td>sync_us_p50</td><td class=\"n\">1.234</td>"));
    assert!(html.contains("<td>send</td><td class=\"n\">0.536</td>"));
    assert!(!html.contains("NaN"));
}

#[test]
fn a_file_is_replaced_or_left() {
    let folder = std::env::temp_dir().join(format!("playfield-report-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("report.html");
    replace(&path, "old").unwrap();
    replace(&path, "new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no other file is left");
    let error = replace(&folder.join("none/report.html"), "new").unwrap_err();
    assert!(error.to_string().contains("report.html: "), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}
