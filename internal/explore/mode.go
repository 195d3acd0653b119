package explore

// rewritten says whether the program consists of rewritten source. tools/explore replaces this file
// in its programs.
const rewritten = false
