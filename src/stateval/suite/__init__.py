"""What a suite file may say (`spec`), reading it (`load`), making objects of it (`build`), and its JSON Schema."""
