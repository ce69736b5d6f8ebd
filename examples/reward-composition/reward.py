"""What a conversation is worth: the answer counts most, memory next, and needless writing costs."""

import json

from stateval import RewardOutput, reward_composer

COST_OF_A_NEEDLESS_WRITE = 0.1


@reward_composer
def careful_memory(ctx):
    """Seven tenths for the answer, three for memory, less a tenth for each write beyond one a fact; never below 0."""
    writes = len(json.loads(ctx.submissions["writes"]))
    needless = max(0, writes - ctx.sample.metadata["facts"])
    earned = 0.7 * ctx.grades["answer"].score + 0.3 * ctx.grades["memory"].score
    return RewardOutput(score=max(0.0, earned - COST_OF_A_NEEDLESS_WRITE * needless), metadata={"needless": needless})
