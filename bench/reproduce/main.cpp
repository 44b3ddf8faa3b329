#include <string>
#include <vector>

#include "bench/reproduce/command.hpp"
#include "runtime/cli/commands.hpp"

/// The program cudp-reproduce: `cudp reproduce WORDS` starts `cudp-reproduce WORDS`.
int main(int argc, char** argv) {
  std::vector<std::string> words = {"reproduce"};
  words.insert(words.end(), argv + 1, argv + argc);
  return cudp::run_commands(cudp::add_reproductions, words);
}
