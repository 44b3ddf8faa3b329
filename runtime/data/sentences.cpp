#include "runtime/data/sentences.hpp"

#include <array>
#include <set>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/data/dice.hpp"
#include "runtime/data/range.hpp"
#include "runtime/data/sources.hpp"
#include "runtime/data/text.hpp"
#include "runtime/data/tokenizer.hpp"

namespace cudp {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kTrain = 8'000;
constexpr std::size_t kTest = 2'000;

constexpr std::array<std::string_view, 12> kBirds = {"hen",   "goose", "duck",  "swan",
                                                     "crow",  "owl",   "stork", "eagle",
                                                     "robin", "gull",  "heron", "dove"};
constexpr std::array<std::string_view, 12> kOthers = {"fox",    "cat",   "dog",  "mouse",
                                                      "horse",  "cow",   "goat", "hare",
                                                      "badger", "otter", "bear", "wolf"};
constexpr std::array<std::string_view, 8> kAdjectives = {"old",  "small", "hungry", "clever",
                                                         "grey", "young", "tired",  "loud"};
constexpr std::array<std::string_view, 6> kAdverbs = {"quietly", "often",  "slowly",
                                                      "never",   "gladly", "always"};
constexpr std::array<std::string_view, 6> kOpenings = {
    "in the morning", "near the river", "today", "behind the barn", "in winter", "at night"};
/// A verb in active and passive voice.
struct Verb {
  std::string_view active;
  std::string_view passive;
};
constexpr std::array<Verb, 8> kVerbs = {{{"follows", "followed"},
                                         {"sees", "seen"},
                                         {"helps", "helped"},
                                         {"visits", "visited"},
                                         {"hears", "heard"},
                                         {"trusts", "trusted"},
                                         {"teaches", "taught"},
                                         {"feeds", "fed"}}};
constexpr std::array<std::string_view, 3> kSmall = {"the", "is", "by"};

template <class List>
const auto& one_of(const List& list, Dice& dice) {
  return list[dice.below(list.size())];
}

void add(std::string& sentence, std::string_view words) {
  if (!sentence.empty()) sentence += ' ';
  sentence += words;
}

/// Returns "the old fox", or in half of all cases "the fox". dice: source of the random numbers.
/// animal: "fox" in this example.
std::string phrase(std::string_view animal, Dice& dice) {
  std::string words = "the";
  if (dice.below(2) == 0) add(words, one_of(kAdjectives, dice));
  add(words, animal);
  return words;
}

/// Makes one rank's share of sentences first to first + count - 1, as a data set. encoder: converts
/// the sentences to word ids.
Dataset make_part(const TextEncoder& encoder, std::size_t first, std::size_t count, Share share) {
  Dataset set;
  encoder.describe(set);
  set.classes = 2;
  const ExampleRange range = share.of(count);
  for (std::size_t i = first + range.begin; i < first + range.end; ++i) {
    const Sentence s = make_sentence(kSeed, i);
    encoder.append(s.text, set);
    set.labels.push_back(s.label);
  }
  record_range(set, share, count);
  return set;
}

}  // namespace

Sentence make_sentence(std::uint64_t seed, std::uint64_t i) {
  Dice dice(seed, i);
  const std::string_view opening =
      dice.below(2) == 0 ? one_of(kOpenings, dice) : std::string_view();
  std::string bird = phrase(one_of(kBirds, dice), dice);
  std::string other = phrase(one_of(kOthers, dice), dice);
  const std::string_view adverb = dice.below(2) == 0 ? one_of(kAdverbs, dice) : std::string_view();
  const Verb& verb = one_of(kVerbs, dice);
  const bool passive = dice.below(4) == 0;
  const bool bird_does_it = dice.below(2) == 0;

  const bool bird_first = bird_does_it != passive;
  Sentence s{.text = std::string(opening), .label = static_cast<std::uint8_t>(bird_does_it)};
  add(s.text, bird_first ? bird : other);
  if (passive) add(s.text, "is");
  if (!adverb.empty()) add(s.text, adverb);
  add(s.text, passive ? verb.passive : verb.active);
  if (passive) add(s.text, "by");
  add(s.text, bird_first ? other : bird);
  return s;
}

std::vector<std::string> sentence_words() {
  std::set<std::string> words;
  const auto take = [&](std::string_view text) {
    split_words(text, [&](std::string_view word) { words.emplace(word); });
  };
  const auto take_all = [&](const auto& list) {
    for (const std::string_view text : list) take(text);
  };
  take_all(kBirds);
  take_all(kOthers);
  take_all(kAdjectives);
  take_all(kAdverbs);
  take_all(kOpenings);
  take_all(kSmall);
  for (const Verb& verb : kVerbs) {
    take(verb.active);
    take(verb.passive);
  }
  return {words.begin(), words.end()};
}

DataSplit load_sentences(const DataRequest& request) {
  const TextOptions& options = request.text;
  if (!options.vocabulary.empty() || !options.embedding.empty() || options.vocabulary_size > 0 ||
      options.tokenizer != Tokenizer::words)
    throw InputError(
        "--vocabulary, --embedding and --tokenizer: expected none with sentences, which have words "
        "of their own, found some");
  auto coder = request.coder;
  if (coder == nullptr)
    coder = std::make_shared<TextCoder>(make_coder(options, request.dir, sentence_words()));
  const TextEncoder encoder(*coder);
  DataSplit split;
  split.text = coder;
  split.train = make_part(encoder, 0, kTrain, request.share);
  split.test = make_part(encoder, kTrain, kTest, request.share);
  return split;
}

}  // namespace cudp
