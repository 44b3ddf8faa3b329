#include "runtime/base/nearest.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"
#include "runtime/settings/synonyms.hpp"

namespace cudp {
namespace {

using Names = std::vector<std::string>;

const Names kWords = {"epsilon", "delta", "epochs", "lr", "batch", "micro-batch"};

TEST(Nearest, FindsMisspelledNames) {
  EXPECT_EQ(near_names("epsilom", kWords), Names{"epsilon"});
  EXPECT_EQ(near_names("bacth", kWords), Names{"batch"});  // letters exchanged
  EXPECT_EQ(near_names("EPSILON", kWords), Names{"epsilon"});
  EXPECT_EQ(near_names("micro_batch", kWords), Names{"micro-batch"});
  EXPECT_EQ(near_names("ls", kWords), Names{"lr"});
  EXPECT_TRUE(near_names("x", kWords).empty());
  EXPECT_TRUE(near_names("volume", kWords).empty());
  EXPECT_TRUE(near_names("x", {}).empty());
  EXPECT_TRUE(near_names("", kWords).empty());
  EXPECT_TRUE(near_names("--", kWords).empty());
}

TEST(Nearest, FindsNamesByTheirBeginning) {
  EXPECT_EQ(near_names("adult", preset_names()), Names{"adult-logistic"});
  EXPECT_EQ(near_names("mnist", preset_names()),
            (Names{"mnist-adaclip", "mnist-cnn", "mnist-hf", "mnist-quantile"}));
  EXPECT_EQ(near_names("adult-mlp", preset_names()), Names{"adult-logistic"});
  EXPECT_EQ(near_names("epo", kWords), Names{"epochs"});
  EXPECT_TRUE(near_names("ep", kWords).empty());  // too short to tell
}

TEST(Nearest, FindsSynonymsFirst) {
  constexpr Synonym kSynonyms[] = {
      {"learning-rate", "lr"}, {"delt", "epochs"}, {"rate", "batch"}, {"rate", "q"}};
  EXPECT_EQ(near_names("learning_rate", kWords, kSynonyms), Names{"lr"});
  EXPECT_EQ(near_names("--learning-rate", kWords, kSynonyms), Names{"lr"});
  EXPECT_EQ(near_names("delt", kWords, kSynonyms), Names{"epochs"});
  EXPECT_EQ(near_names("rate", kWords, kSynonyms), Names{"batch"});
  const Names dashed = {"--lr", "--batch"};
  EXPECT_EQ(near_names("--learning-rate", dashed, kSynonyms), Names{"--lr"});
}

TEST(Nearest, SaysAllWhereNothingIsNear) {
  EXPECT_EQ(nearest_or_all("epsilom", kWords), "the nearest is 'epsilon'");
  EXPECT_EQ(nearest_or_all("mnist", Names{"mnist-a", "mnist-b", "c"}),
            "the nearest are 'mnist-a' and 'mnist-b'");
  EXPECT_EQ(nearest_or_all("volume", Names{"a", "b", "c"}), "there are a, b and c");
  EXPECT_EQ(nearest_or_all("volume", kWords, {}, "--help lists them"), "--help lists them");
}

/// Each leads to an option of some command; no name of ours is another's synonym.
TEST(Nearest, SynonymsOfOptionsAreOfOptions) {
  const Names train = option_keys();
  const Names others = {"q", "examples", "orders", "neighbours", "canaries"};
  for (const Synonym& s : option_synonyms()) {
    const std::string ours(s.ours);
    EXPECT_TRUE(find_option(ours) != nullptr || std::ranges::count(others, ours) == 1) << ours;
    EXPECT_EQ(find_option(s.theirs), nullptr) << s.theirs;
    for (const char c : s.theirs) EXPECT_TRUE(c == '-' || c >= '0') << s.theirs;
  }
}

}  // namespace
}  // namespace cudp
