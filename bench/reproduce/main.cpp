#include <string>
#include <vector>

#include "bench/reproduce/command.hpp"
#include "runtime/cli/commands.hpp"

/// cudp-reproduce WORDS is what `cudp reproduce WORDS` starts.
int main(int argc, char** argv) {
  std::vector<std::string> words = {"reproduce"};
  words.insert(words.end(), argv + 1, argv + argc);
  return cudp::run_commands(cudp::add_reproductions, words);
}
