"""Speed, memory and size of stateval beside its peers, measured in one run on one machine: `make bench`.

Nothing here is installed with the package, and nothing is needed but Python and pip: each contender gets an
environment of its own below `.bench/`.
"""
