"""Every shape that an item of a cron field can have: what the tests compare with the parser of each predecessor."""

from __future__ import annotations

from beat.timing.cron.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY

SHAPES = "{a} {b} {a}-{b} {b}-{a} {a}-{a} {b}-{b} {a},{b} {a}-{b}/2 {b}-{a}/2 {a}/3 {b}/2 */2 */3 {a}-{a}/2 {a}-{b},{b}"
ENDS = {  # a low and a high value, and their names
    MINUTE: [("5", "40"), ("0", "59")],
    HOUR: [("3", "22"), ("0", "23")],
    DAY: [("2", "30"), ("1", "31"), ("1", "15")],
    MONTH: [("2", "10"), ("feb", "oct"), ("1", "12"), ("jan", "dec")],
    WEEKDAY: [
        ("1", "5"),
        ("mon", "fri"),
        ("0", "6"),
        ("sun", "sat"),
        ("0", "7"),
        ("6", "7"),
        ("sun", "7"),
        ("mon", "sun"),
    ],
}
ITEMS = {
    column: sorted({shape.format(a=a, b=b) for a, b in ends for shape in SHAPES.split()})
    for column, ends in ENDS.items()
}
