#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cudp {

/// A sentence of the built-in texts, and whether in it a bird does something to another animal (1)
/// or another animal to a bird (0).
struct Sentence {
  std::string text;
  std::uint8_t label = 0;
};

/// Sentence i is a function of seed and i alone, the same on every machine: "in the morning the old
/// fox quietly follows the small hen". Each has one bird and one other animal, drawn by themselves,
/// who does it by a coin; a quarter are passive ("the hen is followed by the fox"). So the words of
/// a sentence, without their order, tell nothing about its label, and who comes first is right in
/// three quarters only.
Sentence make_sentence(std::uint64_t seed, std::uint64_t i);

/// Every word that there is, in byte order.
std::vector<std::string> sentence_words();

}  // namespace cudp
