#include "runtime/data/text_options.hpp"

#include <gtest/gtest.h>

#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"
#include "runtime/settings/settings.hpp"

namespace cudp {
namespace {

TextOptions resolved(std::initializer_list<std::pair<const char*, const char*>> given) {
  Settings s;
  for (const auto& [key, text] : given) {
    const std::string place = std::string("--") + key;
    s[key] = {parse_value(*find_option(key), text, place), place};
  }
  std::vector<std::string> notes;
  return resolve_config(s, notes).of<TextOptions>();
}

/// A preset's own words are declared public; those of a flag in their place are not.
TEST(TextOptions, AnotherListIsPrivateUntilDeclared) {
  EXPECT_TRUE(resolved({{"preset", "imdb-lstm"}}).vocabulary_is_public);
  EXPECT_FALSE(
      resolved({{"preset", "imdb-lstm"}, {"vocabulary", "mine.txt"}}).vocabulary_is_public);
  EXPECT_TRUE(
      resolved(
          {{"preset", "imdb-lstm"}, {"vocabulary", "mine.txt"}, {"vocabulary-is-public", "true"}})
          .vocabulary_is_public);
}

TEST(TextOptions, AnotherTableIsNotReadAsTheFirst) {
  const TextOptions preset = resolved({{"preset", "imdb-mean"}});
  EXPECT_EQ(preset.embedding_dims, 100);
  const TextOptions other = resolved({{"preset", "imdb-mean"}, {"embedding", "glove"}});
  EXPECT_EQ(other.embedding_dims, 0);
  EXPECT_EQ(other.tokenizer, Tokenizer::words);
  EXPECT_EQ(other.tokens, preset.tokens);
  EXPECT_EQ(resolved({{"preset", "imdb-mean"}, {"embedding", "x.txt"}, {"embedding-dims", "7"}})
                .embedding_dims,
            7);
}

TEST(TextOptions, APresetGoesByItsModel) {
  EXPECT_EQ(preset_for("imdb"), "imdb-rnn");
  EXPECT_EQ(preset_for("imdb", "none", "dpsgd", "imdb-mean"), "imdb-mean");
  EXPECT_EQ(preset_for("imdb", "none", "dpsgd", "imdb-lstm"), "imdb-lstm");
  EXPECT_EQ(preset_for("sentences"), "sentences-lstm");
  EXPECT_EQ(preset_for("mnist", "none", "dpsgd", "mlp"), "mnist-cnn");
}

TEST(TextOptions, SurviveBeingWrittenAndRead) {
  TrainConfig c;
  c.dataset = "imdb";
  c.of<TextOptions>() = {.tokens = 17,
                         .keep = Keep::first,
                         .tokenizer = Tokenizer::wordpiece,
                         .vocabulary = "v.txt",
                         .vocabulary_size = 9,
                         .vocabulary_is_public = true,
                         .embedding = "e.safetensors",
                         .embedding_tensor = "t",
                         .embedding_dims = 3,
                         .store_embedding = true};
  TrainConfig back;
  apply_settings(parse_settings(write_config(c, Audience::release), "written"), back);
  EXPECT_EQ(back.of<TextOptions>(), c.of<TextOptions>());
}

}  // namespace
}  // namespace cudp
