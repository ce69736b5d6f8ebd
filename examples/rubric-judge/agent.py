"""An agent that can draw a dozen things, and says so where it cannot."""

from stateval import agent_factory

PICTURES = {
    "cat": r"""
 /\_/\
( o.o )
 > ^ <
""",
    "house": r"""
   /\
  /  \
 /____\
 |  _ |
 | | ||
 |_|_||
""",
    "tree": r"""
    *
   ***
  *****
 *******
   |||
""",
    "snowman": r"""
   ___
  _|_|_
  (o o)
  ( : )
 (  :  )
""",
    "rocket": r"""
   /\
  |==|
  |  |
  |  |
 /____\
  |  |
  vVVv
""",
    "heart": r"""
  ***   ***
 ***** *****
  *********
    *****
      *
""",
    "boat": r"""
     |\
     | \
     |__\
 ____|____
 \       /
  \_____/
""",
    "sun": r"""
   \ | /
   .---.
 --|   |--
   '---'
   / | \
""",
    "face": r"""
   .-----.
  /  o o  \
 |    ^    |
 |  \___/  |
  \       /
   `-----'
""",
    "car": r"""
    ______
   /|_||_\`.__
  (   _    _ _\
  =`-(_)--(_)-'
""",
    "rabbit": r"""
 (\(\
 ( -.-)
 o_(")(")
""",
    "robot": r"""
  [o_o]
 /|___|\
   | |
  _| |_
""",
}


class Draughtsman:
    """Draws whatever it knows of what it is asked for."""

    def send(self, message: str) -> str:
        words = message.lower().rstrip(".").split()
        known = [thing for thing in PICTURES if thing in words]
        return PICTURES[known[0]].strip("\n") if known else "I cannot draw that yet."


@agent_factory
def make_agent(sample):
    return Draughtsman()
