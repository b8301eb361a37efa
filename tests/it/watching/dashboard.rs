//! `deploy/grafana/stint.json`: the panels as Grafana reads them.

use serde_json::{Value, json};

use super::panels::{Panel, Row, rows};
use super::{is_up_to_date, names_in, series};

/// Grafana's grid has so many columns; a panel takes a third of them.
const WIDTH: usize = 8;
const HEIGHT: usize = 7;

fn data_source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn shown(panel: &Panel, id: usize, (x, y): (usize, usize)) -> Value {
    let targets = panel.queries.iter().zip('A'..).map(|((query, legend), reference)| {
        json!({ "datasource": data_source(), "expr": query, "legendFormat": legend, "refId": reference })
    });
    json!({
        "id": id,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": data_source(),
        "gridPos": { "x": x, "y": y, "w": WIDTH, "h": HEIGHT },
        "fieldConfig": { "defaults": { "unit": panel.unit, "min": 0 }, "overrides": [] },
        "options": { "tooltip": { "mode": "multi" }, "legend": { "displayMode": "list", "placement": "bottom" } },
        "targets": targets.collect::<Vec<_>>(),
    })
}

/// The first row is open, the others open on a click.
fn all_panels(rows: &[Row]) -> Vec<Value> {
    let (mut all, mut id, mut y) = (Vec::new(), 0, 0);
    for (number, row) in rows.iter().enumerate() {
        let (row_id, row_y) = (id + 1, y);
        id += 1;
        y += 1;
        let inside: Vec<Value> = row
            .panels
            .iter()
            .enumerate()
            .map(|(at, panel)| {
                let place = ((at % 3) * WIDTH, y + (at / 3) * HEIGHT);
                shown(panel, id + 1 + at, place)
            })
            .collect();
        id += inside.len();
        let collapsed = number > 0;
        let (below, within) = if collapsed { (vec![], inside) } else { (inside, vec![]) };
        all.push(json!({
            "id": row_id, "type": "row", "title": row.title, "collapsed": collapsed, "panels": within,
            "gridPos": { "x": 0, "y": row_y, "w": 24, "h": 1 },
        }));
        if !collapsed {
            y += row.panels.len().div_ceil(3) * HEIGHT;
        }
        all.extend(below);
    }
    all
}

fn dashboard() -> Value {
    let instance = "label_values(stint_build_info, instance)";
    json!({
        "uid": "stint",
        "title": "Stint",
        "tags": ["stint"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-3h", "to": "now" },
        "templating": { "list": [
            { "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus" },
            {
                "name": "instance", "label": "Gateway", "type": "query", "datasource": data_source(), "query": instance,
                "refresh": 2, "multi": true, "includeAll": true, "allValue": ".+",
                "current": { "text": "All", "value": "$__all" },
            },
        ] },
        "panels": all_panels(&rows()),
    })
}

#[test]
fn the_dashboard_shows_every_series() {
    let made = serde_json::to_string_pretty(&dashboard()).unwrap() + "\n";
    is_up_to_date("deploy/grafana/stint.json", &made);
    for series in series() {
        assert!(made.contains(&series.name), "{}", series.name);
    }
}

#[test]
fn the_dashboard_asks_for_nothing_that_there_is_not() {
    let known: Vec<String> = series().into_iter().map(|series| series.name).collect();
    for panel in rows().iter().flat_map(|row| &row.panels) {
        for (query, _) in &panel.queries {
            for name in names_in(query) {
                assert!(known.contains(&name), "{name} in {query}");
            }
        }
    }
}
