package explore

// rewritten says that the program has been made of rewritten source. tools/explore replaces this file in the programs that it makes.
const rewritten = false
