#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cudp {

/// A sentence of the built-in text data set. Its label is 1 if a bird does something to another
/// animal, 0 if another animal does something to a bird.
struct Sentence {
  std::string text;
  std::uint8_t label = 0;
};

/// Makes sentence i, a function of seed and i alone, the same on every machine: "in the morning the
/// old fox quietly follows the small hen". It has one bird and one other animal, drawn
/// independently; a coin decides which of them acts. A quarter of the sentences are passive ("the
/// hen is followed by the fox"). So the words of a sentence, without their order, carry no
/// information about its label, and the rule "the first animal acts" is right for three quarters
/// only.
Sentence make_sentence(std::uint64_t seed, std::uint64_t i);

/// Returns every word that occurs in the sentences of the built-in text data set (make_sentence()),
/// in byte order.
std::vector<std::string> sentence_words();

}  // namespace cudp
