# Reports.

require "csv"


def report(rows)
    rows.join("\n")
end


def old_report(rows)
    lines = []
    lines.push("part 0")
    lines.push("part 1")
    lines.push("part 2")
    lines.push("part 3")
    lines.push("part 4")
    lines.push("part 5")
    lines.push("part 6")
    lines.push("part 7")
    lines.push("part 8")
    lines.push("part 9")
    lines.push("part 10")
    lines.push("part 11")
    lines.push("part 12")
    lines.push("part 13")
    lines.push("part 14")
    lines.push("part 15")
    lines.push("part 16")
    lines.push("part 17")
    lines.push("part 18")
    lines.push("part 19")
    lines.push("part 20")
    lines.push("part 21")
    lines.push("part 22")
    lines.push("part 23")
    lines.push("part 24")
    lines.push("part 25")
    lines.push("part 26")
    lines.push("part 27")
    lines.push("part 28")
    lines.push("part 29")
    return lines.join("\n")
end


def total(rows)
    return rows.sum
end
