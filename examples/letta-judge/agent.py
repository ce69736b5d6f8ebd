"""An agent with three answers, one of them rude."""


def make(sample):
    answers = {
        "late": "I am sorry that you had to wait. It comes tomorrow, and I pay the delivery back.",
        "broken": "Thank you for telling us. A new cup is on its way.",
        "again": "What do you do with these cups?",
    }
    return lambda message: answers[sample.id]
