"""Every benchmark, one after the other: `python -m bench`."""

from bench import cached_layout, parse, sandbox

if __name__ == "__main__":
    for bench in (cached_layout, parse, sandbox):
        print(f"== {bench.__name__.rpartition('.')[2]}: {(bench.__doc__ or '').partition(chr(10))[0]}")
        bench.main()
