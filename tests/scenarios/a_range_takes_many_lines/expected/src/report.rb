# Reports.


def report(rows)
    rows.join("\n")
end


def total(rows)
    return rows.sum
end
