#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/sentences.hpp"
#include "runtime/data/text.hpp"
#include "runtime/data/tokenizer.hpp"
#include "runtime/data/word_vectors.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  Words words;
  split_words(text, [&](std::string_view w) { words.emplace_back(w); });
  return words;
}

Words basic_words_of(std::string_view text) {
  Words words;
  split_basic(text, [&](std::string_view w) { words.emplace_back(w); });
  return words;
}

std::unique_ptr<ByteReader> bytes_of(const std::string& text) {
  return memory_bytes("list", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

TEST(Tokenizer, SplitsWordsAsTheDataSetsDescriptionSays) {
  EXPECT_EQ(words_of("The FILM wasn't bad.<br /><br />'Not' at all!"),
            (Words{"the", "film", "wasn't", "bad", "not", "at", "all"}));
  EXPECT_EQ(words_of("a<br />b <BR /> c<br>d"), (Words{"a", "b", "c", "br", "d"}));
  EXPECT_EQ(words_of("''' 10/10 - rock'n'roll ''n'''"), (Words{"10", "10", "rock'n'roll", "n"}));
  EXPECT_EQ(words_of("caf\xc3\xa9 na\xefve \xff\xfe x"), (Words{"caf", "na", "ve", "x"}));
  EXPECT_EQ(words_of("one\xc2\x85two\tthree\nfour"), (Words{"one", "two", "three", "four"}));
  EXPECT_EQ(words_of(""), Words{});
  EXPECT_EQ(words_of(" .<br />' "), Words{});
  EXPECT_EQ(words_of("<br /"), (Words{"br"}));
  EXPECT_TRUE(is_word("don't"));
  for (const char* no : {"n't ", "Don't", "'s", "a b", "", "caf\xc3\xa9"})
    EXPECT_FALSE(is_word(no)) << no;
}

/// Words and vectors get into the model, and a tuning releases one training alone.
TEST(TextFiles, OfATrainingThatATuningMadeAreRefused) {
  const TemporaryFolder folder;
  const std::string vectors = "tuning/private/runs/000002/release/vectors.txt";
  fs::create_directories(fs::path(folder / vectors).parent_path());
  write_text(folder / vectors, "good 1 0\nbad 0 1\n");
  write_text(folder / "tuning/private/runs/000002/release/words.txt", "good\nbad\n");
  fs::create_directory_symlink(folder / "tuning/private/runs/000002/release", folder / "link");
  fs::create_symlink(folder / vectors, folder / "vectors.txt");
  const auto coder = [&](const std::string& embedding, const std::string& vocabulary) {
    return make_coder({.vocabulary = vocabulary, .embedding = embedding}, folder.path().string(),
                      std::nullopt);
  };
  const std::string vectors_of_it[] = {folder / vectors, folder / "link/vectors.txt",
                                       folder / "vectors.txt"};
  const std::string words_of_it = folder / "link/words.txt";
  for (const std::string& file : vectors_of_it) EXPECT_EQ(coder(file, "").vocabulary.rows(), 3);
  EXPECT_EQ(coder("", words_of_it).vocabulary.rows(), 6);
  write_text(folder / "tuning/private/tuning.json", "{}");
  const auto refused = [&](const std::string& embedding, const std::string& vocabulary) {
    const std::string tuning = fs::canonical(folder / "tuning").string();
    try {
      (void)coder(embedding, vocabulary);
      ADD_FAILURE() << "expected an error";
    } catch (const InputError& e) {
      EXPECT_EQ(e.what(),
                (embedding.empty() ? "--vocabulary " + vocabulary : "--embedding " + embedding) +
                    ": expected a public file, found one of a training of a tuning, "
                    "which releases the best one alone: " +
                    tuning + "/release (cudp tune --resume " + tuning + " finishes it)");
    }
  };
  for (const std::string& file : vectors_of_it) refused(file, "");
  refused("", words_of_it);
}

/// By google-research/bert's BasicTokenizer, in the version of Hugging Face's tokenizers 0.22.
TEST(Tokenizer, SplitsAsBertDoes) {
  EXPECT_EQ(basic_words_of("The film isn't bad!"),
            (Words{"the", "film", "isn", "'", "t", "bad", "!"}));
  EXPECT_EQ(basic_words_of("Caf\u00e9 na\u00efve \u00c5NGSTR\u00d6M"),
            (Words{"cafe", "naive", "angstrom"}));
  EXPECT_EQ(basic_words_of("\u4e2d\u6587 text"), (Words{"\u4e2d", "\u6587", "text"}));
  EXPECT_EQ(basic_words_of("\u0130stanbul"), (Words{"istanbul"}));
  EXPECT_EQ(basic_words_of(std::string_view("a\u200bb\u00a0c\ufffd d\0e", 15)),
            (Words{"ab", "c", "de"}));
  EXPECT_EQ(basic_words_of("caf\u00e9\u2014stra\u00dfe $5.00^2"),
            (Words{"cafe", "\u2014", "stra\u00dfe", "$", "5", ".", "00", "^", "2"}));
  EXPECT_EQ(basic_words_of("x<br />y"), (Words{"x", "y"}));
  // What is not UTF-8 is dropped, as U+FFFD is.
  EXPECT_EQ(basic_words_of("a\xff\xfe"
                           "b \xc3"),
            (Words{"ab"}));
}

/// The tokens of 39,000 characters whose properties no version of Unicode has changed for long:
/// those of ICU 72, which split words before utf8proc did.
TEST(Tokenizer, HasTheTokensOfIcu) {
  constexpr char32_t kBlocks[][2] = {{0x1, 0x377},     {0x37a, 0x52f},   {0x1e00, 0x1fff},
                                     {0x2000, 0x206f}, {0x3041, 0x30ff}, {0x4e00, 0x9fff},
                                     {0xac00, 0xd7a3}, {0xf900, 0xfb06}, {0xff01, 0xffee}};
  const auto utf8 = [](char32_t c) {
    const auto byte = [](char32_t x) { return static_cast<char>(x); };
    if (c < 0x80) return std::string{byte(c)};
    if (c < 0x800) return std::string{byte(0xc0 | c >> 6), byte(0x80 | (c & 63))};
    return std::string{byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
  };
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  int tokens = 0;
  for (const auto& [first, last] : kBlocks)
    for (char32_t c = first; c <= last; ++c)
      for (const std::string& token : basic_words_of("a" + utf8(c) + "B")) {
        ++tokens;
        for (const char x : token + "\n")
          hash = (hash ^ static_cast<unsigned char>(x)) * 0x100000001b3;
      }
  EXPECT_EQ(tokens, 78293);
  EXPECT_EQ(hash, 0x91770681ec483a56u);
}

/// The longest piece first, and all of a word or nothing.
TEST(Tokenizer, FindsPiecesGreedily) {
  const std::array<std::string, 7> known = {"un", "una", "##ffa", "##ff", "##ble", "##a", "b"};
  const auto is_piece = [&](std::string_view p) {
    return std::find(known.begin(), known.end(), p) != known.end();
  };
  const auto pieces = [&](std::string_view word) -> Words {
    Words out;
    if (!split_pieces(word, 5, is_piece, [&](std::string_view p) { out.emplace_back(p); }))
      return {"none"};
    return out;
  };
  EXPECT_EQ(pieces("unaffable"), (Words{"una", "##ffa", "##ble"}));
  EXPECT_EQ(pieces("unaff"), (Words{"una", "##ff"}));
  EXPECT_EQ(pieces("unaffx"), Words{"none"});
  EXPECT_EQ(pieces("b"), Words{"b"});
  EXPECT_EQ(pieces("ble"), Words{"none"});
  EXPECT_EQ(pieces("b" + std::string(99, 'a')).size(), 100u);
  EXPECT_EQ(pieces("b" + std::string(100, 'a')), Words{"none"});
}

TEST(TextVocabulary, ReadsListsWithAndWithoutCounts) {
  EXPECT_EQ(read_words(*bytes_of("the\t336755\nand\t164140\r\na")), (Words{"the", "and", "a"}));
  const auto refused = [](const char* text) {
    return refusal_of([&] { read_words(*bytes_of(text)); });
  };
  EXPECT_EQ(refused("a\nb\na\t3\n"), "list, line 3: expected a word once, found 'a' again");
  EXPECT_EQ(refused("a\n\nb\n"),
            "list, line 2: expected a word, or a word, a tab and its count, found ''");
  EXPECT_NE(refused("a b\n").find("line 1"), std::string::npos);
  EXPECT_NE(refused("a\nb\x01\n").find("line 2"), std::string::npos);
  EXPECT_NE(refused("").find("found none"), std::string::npos);
  // A mark at the start of the file is none of the word's; a second would be, and be lost when the
  // list is written and read again.
  EXPECT_EQ(read_words(*bytes_of("\xef\xbb\xbf"
                                 "a\n")),
            Words{"a"});
  EXPECT_NE(refused("\xef\xbb\xbf\xef\xbb\xbf"
                    "a\n")
                .find("line 1"),
            std::string::npos);
  EXPECT_NE(refused("a\n\xef\xbb\xbf"
                    "b\n")
                .find("line 2"),
            std::string::npos);
}

TEST(TextVocabulary, NumbersBeginBehindTheMarks) {
  const Vocabulary plain({"a", "b"}, Marks::none_but_zero);
  EXPECT_EQ(plain.rows(), 3);
  EXPECT_EQ(plain.number("a"), 1);
  EXPECT_EQ(plain.number("b"), 2);
  EXPECT_EQ(plain.number("c"), 0);
  const Vocabulary four({"a", "b"}, Marks::four);
  EXPECT_EQ(four.rows(), 6);
  EXPECT_EQ(four.number("b"), 5);
  EXPECT_EQ(four.number("c"), 1);
  EXPECT_EQ(four.text(), "a\nb\n");
  EXPECT_EQ(read_words(*bytes_of(four.text())), four.words());
  EXPECT_EQ(Vocabulary({"x", "[UNK]"}, Marks::none_but_zero).number("c"), 2);
  EXPECT_NE(refusal_of([] { check_word_count(65'536, Marks::none_but_zero, "big.txt"); }), "");
  EXPECT_EQ(refusal_of([] { check_word_count(65'535, Marks::none_but_zero, "big.txt"); }), "");
}

TextCoder coder_of(Words words, Marks marks, TextOptions options) {
  return {std::move(options), Vocabulary(std::move(words), marks), nullptr, ""};
}

TEST(TextEncoding, KeepsTheAskedEndAndFillsWithZeros) {
  const auto encoded = [](std::string_view text, Keep keep, Marks marks) {
    const TextCoder coder = coder_of({"a", "b", "c", "d", "e"}, marks, {.tokens = 4, .keep = keep});
    const TextEncoder encoder(coder);
    Dataset set;
    encoder.describe(set);
    EXPECT_EQ(set.shape, (Shape{1, 1, 4}));
    EXPECT_EQ(set.words, coder.vocabulary.rows());
    encoder.append(text, set);
    EXPECT_EQ(set.tokens.size(), 4u);
    std::vector<int> out = {set.lengths[0]};
    out.insert(out.end(), set.tokens.begin(), set.tokens.end());
    return out;
  };
  using Numbers = std::vector<int>;
  constexpr Marks kNone = Marks::none_but_zero;
  EXPECT_EQ(encoded("a b", Keep::last, kNone), (Numbers{2, 1, 2, 0, 0}));
  EXPECT_EQ(encoded("a z b", Keep::last, kNone), (Numbers{3, 1, 0, 2, 0}));
  EXPECT_EQ(encoded("A b, c d. E", Keep::last, kNone), (Numbers{4, 2, 3, 4, 5}));
  EXPECT_EQ(encoded("a b c d e", Keep::first, kNone), (Numbers{4, 1, 2, 3, 4}));
  EXPECT_EQ(encoded("", Keep::last, kNone), (Numbers{0, 0, 0, 0, 0}));
  // Marks: 1 unknown, 2 the beginning, 3 the end.
  EXPECT_EQ(encoded("a z", Keep::last, Marks::four), (Numbers{4, 2, 4, 1, 3}));
  EXPECT_EQ(encoded("", Keep::last, Marks::four), (Numbers{2, 2, 3, 0, 0}));
  EXPECT_EQ(encoded("a b c d", Keep::last, Marks::four), (Numbers{4, 5, 6, 7, 3}));
  EXPECT_EQ(encoded("a b c d", Keep::first, Marks::four), (Numbers{4, 2, 4, 5, 6}));
}

TEST(TextEncoding, OfPiecesMarksWordsThatHaveNone) {
  const TextCoder coder = coder_of({"[UNK]", "un", "##aff", "able", "!"}, Marks::none_but_zero,
                                   {.tokens = 8, .tokenizer = Tokenizer::wordpiece});
  EXPECT_EQ(TextEncoder(coder).numbers("Unaff!? able"),
            (std::vector<std::uint16_t>{2, 3, 5, 1, 4}));
}

VectorTable table_of(const std::string& bytes, const std::string& tensor = "") {
  return read_vectors(*bytes_of(bytes), tensor);
}

TEST(WordVectorTables, ReadGloveText) {
  const VectorTable t = table_of("the 0.5 -1 2e-1\nn't 1 2 3\n");
  EXPECT_EQ(t.words, (Words{"the", "n't"}));
  EXPECT_EQ(t.vectors.rows, 2);
  EXPECT_EQ(t.vectors.columns, 3);
  EXPECT_EQ(t.vectors.values, (std::vector<float>{0.5f, -1.0f, 0.2f, 1.0f, 2.0f, 3.0f}));
  // printf 'the 0.5 -1 2e-1\nn'"'"'t 1 2 3\n' | sha256sum
  EXPECT_EQ(t.digest, "05bfe0f8a96d6a059ccb2fb3b342c006b41fc8c11b86823de1ac0bd04c19c545");
  EXPECT_EQ(table_of("2 3\nthe 0.5 -1 2e-1\nn't 1 2 3\n").vectors.values, t.vectors.values);
  const auto refused = [](const char* text) { return refusal_of([&] { table_of(text); }); };
  EXPECT_EQ(refused("a 1 2\nb 1\n"),
            "list, line 2: expected 2 numbers as in the lines before, found 1");
  EXPECT_EQ(refused("a 1 2\na 1 2\n"), "list, line 2: expected a word once, found 'a' again");
  EXPECT_NE(refused("a 1 x\n").find("line 1"), std::string::npos);
  EXPECT_NE(refused("a 1 nan\n").find("line 1"), std::string::npos);
  EXPECT_NE(refused("a 1 1e99\n").find("line 1"), std::string::npos);
  EXPECT_NE(refused("a\n").find("line 1"), std::string::npos);
  EXPECT_NE(refused("").find("found 0 of 0"), std::string::npos);
}

TEST(WordVectorTables, AreReducedToTheirPrincipalComponents) {
  // Along (2, 1, 2) / 3 the rows spread three times as far as along (1, -2, 0), and not otherwise.
  std::string text;
  const std::array<std::array<double, 2>, 4> places = {{{3, 0}, {-3, 0}, {0, 1}, {0, -1}}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double s = places[i][0] / 3.0, t = places[i][1] / std::sqrt(5.0);
    text += "w" + std::to_string(i) + " " + std::to_string(7 + 2 * s + t) + " " +
            std::to_string(-5 + s - 2 * t) + " " + std::to_string(1 + 2 * s) + "\n";
  }
  VectorTable one = table_of(text);
  reduce(one, 1);
  EXPECT_EQ(one.vectors.columns, 1);
  // Root mean square 0.4: 0.4 sqrt(2) and nothing.
  const std::array<double, 4> expected = {0.4 * std::sqrt(2.0), -0.4 * std::sqrt(2.0), 0, 0};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(one.vectors.values[i], expected[i], 1e-5) << i;
  VectorTable two = table_of(text);
  reduce(two, 2);
  // Squares 9, 9, 1, 1 over eight numbers. Of (1, -2, 0) the largest is made positive: (-1, 2, 0).
  const double scale = 0.4 / std::sqrt(20.0 / 8.0);
  const std::array<double, 8> both = {3, 0, -3, 0, 0, -1, 0, 1};
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(two.vectors.values[i], scale * both[i], 1e-5) << i;
  VectorTable same = table_of(text);
  const std::vector<float> before = same.vectors.values;
  reduce(same, 3);
  EXPECT_EQ(same.vectors.values, before);
  EXPECT_NE(refusal_of([&] { reduce(same, 4); }), "");
}

TEST(WordVectorTables, GiveWordsTheirRows) {
  const VectorTable glove = table_of("do 2 4\nn't 0 2\n's 8 8\ngood 1 1\n");
  const auto by_word =
      vectors_of(Vocabulary({"good", "don't", "unheard", "it's"}, Marks::none_but_zero), glove);
  EXPECT_EQ(by_word->rows, 5);
  EXPECT_EQ(by_word->values, (std::vector<float>{0, 0, 1, 1, 1, 3, 0, 0, 0, 0}));
  const VectorTable pieces = table_of("un 2 2\n##do 4 0\nit 6 6\n' 0 0\ns 3 0\n");
  const auto by_piece = vectors_of(Vocabulary({"undo", "it's", "x"}, Marks::none_but_zero), pieces);
  EXPECT_EQ(by_piece->values, (std::vector<float>{0, 0, 3, 1, 3, 2, 0, 0}));
  VectorTable rows = glove;
  rows.words.clear();
  const auto by_row = vectors_of(Vocabulary({"x", "y"}, Marks::none_but_zero), rows);
  EXPECT_EQ(by_row->values, (std::vector<float>{0, 0, 2, 4, 0, 2}));
  EXPECT_NE(refusal_of([&] {
              vectors_of(Vocabulary({"a", "b", "c", "d", "e"}, Marks::none_but_zero), rows);
            }),
            "");
  EXPECT_EQ(split_clitic("don't").stem, "do");
  EXPECT_EQ(split_clitic("we've").ending, "'ve");
  EXPECT_EQ(split_clitic("n't").stem, "");
  EXPECT_EQ(split_clitic("rocks").ending, "");
}

constexpr const char* kSchema = R"(
name = "reviews"
header = false
delimiter = "\t"
quotes = false
missing = "?"
columns = [
  {name = "good", kind = "label", values = ["no", "yes"]},
  {name = "review", kind = "text"},
])";

/// A folder with a table of texts.
struct Reviews {
  TempFolder folder;
  std::string table =
      folder.write("reviews.tsv", "yes\t\"Good, good\nno\tbad\xff film\nyes\t\nno\t?\n");
  std::string schema = folder.write("schema.toml", kSchema);
  std::string list = folder.write("words.txt", "good\nbad\n");

  DataSplit load(TextOptions text, bool accept = false) const {
    return load_data({.dataset = table,
                      .dir = folder.path(),
                      .schema = schema,
                      .accept_private_bounds = accept,
                      .text = std::move(text)});
  }
  std::string refusal(const TextOptions& text) const {
    return refusal_of([&] { load(text); }, folder.path());
  }
};

TEST(TextTables, BecomeNumbersAndLabels) {
  const Reviews r;
  const DataSplit split = r.load({.tokens = 3, .vocabulary = r.list});
  EXPECT_EQ(split.train.shape, (Shape{1, 1, 3}));
  EXPECT_EQ(split.train.classes, 2);
  EXPECT_EQ(split.train.words, 6);
  EXPECT_EQ(split.train.labels, (std::vector<std::uint8_t>{1, 0, 1, 0}));
  EXPECT_EQ(split.train.lengths, (std::vector<std::uint16_t>{3, 3, 2, 2}));
  EXPECT_EQ(split.train.tokens, (std::vector<std::uint16_t>{4, 4, 3, 5, 1, 3, 2, 3, 0, 2, 3, 0}));
  EXPECT_FALSE(split.size_is_public);
  EXPECT_FALSE(split.test.is_text() && split.test.size() > 0);
}

TEST(TextTables, SayWhereAVocabularyMayBePrivate) {
  const Reviews r;
  EXPECT_EQ(r.load({.vocabulary = r.list}).unsafe,
            Words{"vocabulary not declared public: it may be counted from private text"});
  EXPECT_TRUE(r.load({.vocabulary = r.list, .vocabulary_is_public = true}).unsafe.empty());
  const DataSplit counted = r.load({.vocabulary_size = 2}, true);
  EXPECT_EQ(counted.unsafe, Words{"vocabulary counted from private text"});
  EXPECT_EQ(counted.text->vocabulary.words(), (Words{"good", "bad"}));
  const std::string glove = r.folder.write("glove.txt", "good 1\n's 3\nfilm 2\n");
  const DataSplit own = r.load({.embedding = glove});
  EXPECT_TRUE(own.unsafe.empty());
  EXPECT_EQ(own.text->vocabulary.words(), (Words{"good", "film"}));
  EXPECT_EQ(own.train.vectors->values, (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(r.load({.vocabulary_size = 1, .embedding = glove}).text->vocabulary.words(),
            Words{"good"});
  // Words that the released list could not hold are left out.
  const std::string odd = r.folder.write("odd.txt", "good 1\n\xef\xbb\xbfx 2\na\tb 3\n##s 4\n");
  EXPECT_EQ(r.load({.tokenizer = Tokenizer::wordpiece, .embedding = odd}).text->vocabulary.words(),
            (Words{"good", "##s"}));
}

TEST(TextTables, RefuseWhatDoesNotFit) {
  const Reviews r;
  EXPECT_NE(r.refusal({}).find("--vocabulary: expected a list of words"), std::string::npos);
  EXPECT_NE(r.refusal({.vocabulary = "nowhere.txt"}).find("--vocabulary: expected a file"),
            std::string::npos);
  EXPECT_NE(r.refusal({.embedding = "nowhere.txt"}).find("--embedding: expected a file"),
            std::string::npos);
  EXPECT_NE(r.refusal({.embedding = "glove"}).find("scripts/fetch_data.sh glove"),
            std::string::npos);
  EXPECT_NE(r.refusal({.vocabulary = r.list, .embedding_dims = 3}).find("--embedding: expected"),
            std::string::npos);
  const std::string doubled = r.folder.write("doubled.txt", "a\nb\na\n");
  EXPECT_EQ(r.refusal({.vocabulary = doubled}),
            "DIR/doubled.txt, line 3: expected a word once, found 'a' again");
  // Another number of rows than of words.
  const std::string matrix = r.folder.write(
      "three.safetensors", std::string("\x3c\0\0\0\0\0\0\0", 8) +
                               R"({"e":{"dtype":"F16","shape":[3,1],"data_offsets":[0,6]}}    )" +
                               std::string(6, '\0'));
  EXPECT_EQ(r.refusal({.vocabulary = r.list, .embedding = matrix}),
            "DIR/three.safetensors: expected 2 rows, as DIR/words.txt has words, found 3");
  EXPECT_NE(r.refusal({.embedding = matrix}).find("--vocabulary: expected the words of the rows"),
            std::string::npos);
  // Settings of texts on a table without any.
  const std::string plain = r.folder.write("plain.csv", "a,label\n1,x\n");
  const std::string schema = r.folder.write("plain.toml",
                                            "columns = [{name='a',kind='numeric',min=0,max=1},"
                                            "{name='label',kind='label',values=['x','y']}]");
  EXPECT_NE(refusal_of([&] {
              load_data({.dataset = plain, .schema = schema, .text = {.vocabulary = r.list}});
            }).find("expected with texts only"),
            std::string::npos);
}

TEST(TextTables, HaveOneTextAndOneLabel) {
  const auto refused = [](const std::string& columns) {
    return refusal_of([&] { parse_schema("columns = [" + columns + "]", "s"); });
  };
  const std::string label = "{name='l',kind='label',values=['x','y']}";
  EXPECT_EQ(refused(label + ",{name='t',kind='text'},{name='i',kind='ignore'}"), "");
  EXPECT_NE(refused(label + ",{name='t',kind='text'},{name='u',kind='text'}"), "");
  EXPECT_NE(refused(label + ",{name='t',kind='text'},{name='u',kind='numeric',min=0,max=1}"), "");
  EXPECT_NE(refused(label + ",{name='t',kind='text',min=0}"), "");
  EXPECT_NE(refused("{name='t',kind='text'}"), "");
}

std::uint64_t checksum(const Dataset& set) {
  std::uint64_t h = 0xcbf29ce484222325u;
  const auto add = [&](std::uint64_t b) { h = (h ^ b) * 0x100000001b3u; };
  for (const std::uint16_t token : set.tokens) add(token);
  for (const std::uint16_t length : set.lengths) add(length);
  for (const std::uint8_t label : set.labels) add(label);
  return h;
}

TEST(Sentences, AreTheSameEverywhere) {
  EXPECT_EQ(make_sentence(1, 0).text, "at night the dog is seen by the hen");
  const DataSplit split = load_data({.dataset = "sentences", .text = {.tokens = 20}});
  EXPECT_EQ(split.train.size(), 8'000u);
  EXPECT_EQ(split.test.size(), 2'000u);
  EXPECT_TRUE(split.size_is_public && split.test_is_public && split.unsafe.empty());
  EXPECT_EQ(split.train.words, 4 + static_cast<int>(sentence_words().size()));
  for (const Dataset* set : {&split.train, &split.test})
    for (const std::uint16_t token : set->tokens) EXPECT_NE(token, 1) << "a word of its own";
  for (const std::uint16_t length : split.train.lengths) EXPECT_LE(length, 17);
  EXPECT_EQ(checksum(split.train), 7176562505578862508u);
  EXPECT_EQ(checksum(split.test), 2332556409111510890u);
}

/// Words without their order tell nothing: the best guess by how often each word comes with either
/// label (naive Bayes) is right about half the time, 4.9 standard deviations either way. Who comes
/// first is right in three quarters.
TEST(Sentences, MeanSomethingByTheOrderOfTheirWords) {
  const DataSplit split = load_data({.dataset = "sentences", .text = {.tokens = 20}});
  std::vector<std::array<double, 2>> counts(static_cast<std::size_t>(split.train.words),
                                            {1.0, 1.0});
  for (std::size_t i = 0; i < split.train.tokens.size(); ++i)
    ++counts[split.train.tokens[i]][split.train.labels[i / 20]];
  int right = 0, ones = 0;
  for (std::size_t i = 0; i < split.test.size(); ++i) {
    double odds = 0.0;
    for (std::size_t t = 0; t < split.test.lengths[i]; ++t) {
      const auto& c = counts[split.test.tokens[i * 20 + t]];
      odds += std::log(c[1] / c[0]);
    }
    right += (odds > 0.0) == (split.test.labels[i] == 1) ? 1 : 0;
    ones += split.test.labels[i];
  }
  EXPECT_NEAR(right, 1000, 110);
  EXPECT_NEAR(ones, 1000, 110);
  const Words birds = {"hen",   "goose", "duck",  "swan", "crow",  "owl",
                       "stork", "eagle", "robin", "gull", "heron", "dove"};
  const Words others = {"fox",  "cat",  "dog",    "mouse", "horse", "cow",
                        "goat", "hare", "badger", "otter", "bear",  "wolf"};
  const auto place = [](const Words& words, const Words& any) {
    const auto at = std::find_first_of(words.begin(), words.end(), any.begin(), any.end());
    EXPECT_NE(at, words.end());
    return at;
  };
  int first_is_right = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Sentence s = make_sentence(1, i);
    const Words words = words_of(s.text);
    const bool bird_first = place(words, birds) < place(words, others);
    const bool passive = std::find(words.begin(), words.end(), "by") != words.end();
    EXPECT_EQ(s.label, bird_first != passive ? 1 : 0) << s.text;
    first_is_right += bird_first == (s.label == 1) ? 1 : 0;
  }
  EXPECT_NEAR(first_is_right, 1500, 95);
}

/// The published reviews, where a copy lies beside the project.
class Imdb : public testing::Test {
 protected:
  static std::filesystem::path dir() { return shared_file("data"); }
  void SetUp() override {
    if (!std::filesystem::exists(dir() / "imdb")) GTEST_SKIP() << "no imdb in " << dir();
  }
  static DataSplit load(TextOptions text) {
    return load_data({.dataset = "imdb", .dir = dir().string(), .text = std::move(text)});
  }
  /// Loads a small table with the words and vectors that lie beside the reviews.
  static DataSplit load_small(TextOptions text) {
    const Reviews r;
    return load_data(
        {.dataset = r.table, .dir = dir().string(), .schema = r.schema, .text = std::move(text)});
  }
};

TEST_F(Imdb, HasThePublishedCounts) {
  const DataSplit split = load({.tokens = 3000, .vocabulary = "imdb_vocab20k.tsv"});
  EXPECT_TRUE(split.size_is_public && split.test_is_public);
  EXPECT_EQ(split.unsafe.size(), 1u);
  EXPECT_EQ(split.train.words, 20'004);
  const auto known_share = [](const Dataset& set) {
    std::uint64_t words = 0, known = 0;
    for (std::size_t i = 0; i < set.size(); ++i)
      for (std::size_t t = 0; t < set.lengths[i]; ++t) {
        const std::uint16_t token = set.tokens[i * 3000 + t];
        words += token == 1 || token > 3 ? 1 : 0;
        known += token > 3 ? 1 : 0;
      }
    return std::pair(words, 100.0 * static_cast<double>(known) / static_cast<double>(words));
  };
  ASSERT_EQ(split.train.size(), 25'000u);
  ASSERT_EQ(split.test.size(), 25'000u);
  const auto [words, train_share] = known_share(split.train);
  EXPECT_EQ(words, 5'840'869u);
  EXPECT_EQ(std::llround(static_cast<double>(words) / 25'000.0), 234);
  EXPECT_NEAR(train_share, 97.38, 0.005);
  EXPECT_NEAR(known_share(split.test).second, 96.68, 0.005);
  // With its two marks.
  EXPECT_EQ(*std::max_element(split.train.lengths.begin(), split.train.lengths.end()), 2475);
  for (const Dataset* set : {&split.train, &split.test})
    EXPECT_EQ(std::count(set->labels.begin(), set->labels.end(), 1), 12'500);
}

TEST_F(Imdb, CountsTheVocabularyThatWasPublished) {
  const DataSplit split = load_data({.dataset = "imdb",
                                     .dir = dir().string(),
                                     .accept_private_bounds = true,
                                     .text = {.tokens = 1, .vocabulary_size = 20'000}});
  EXPECT_EQ(split.text->vocabulary.words(),
            read_words(*open_bytes(dir() / "imdb" / "imdb_vocab20k.tsv")));
}

TEST_F(Imdb, HasVectorsForItsWords) {
  const DataSplit split = load_small(
      {.tokens = 1, .vocabulary = "imdb_vocab20k.tsv", .embedding = "imdb20k_glove50.safetensors"});
  EXPECT_EQ(split.train.words, 20'001);
  ASSERT_NE(split.train.vectors, nullptr);
  EXPECT_EQ(split.train.vectors->columns, 50);
  EXPECT_EQ(split.text->embedding_digest,
            "8bb953417e75f0ab4e5e9b428f55ff61e44b257d53e057c6cda9f5a8147db2cc");
  // "the" of GloVe 6B, in half precision.
  const float* const the = split.train.vectors->values.data() + 50;
  EXPECT_NEAR(the[0], 0.418, 3e-4);
  EXPECT_NEAR(the[1], 0.24968, 3e-4);
  EXPECT_EQ(split.train.vectors->values[0], 0.0f);
}

TEST_F(Imdb, HasAPublicVocabularyWithNamedVectors) {
  const DataSplit pieces =
      load_small({.tokens = 1, .tokenizer = Tokenizer::wordpiece, .embedding = "minilm"});
  EXPECT_EQ(pieces.train.words, 30'523);
  EXPECT_EQ(pieces.train.vectors->columns, 100);
  EXPECT_TRUE(pieces.unsafe.empty());
  const TextEncoder encoder(*pieces.text);
  const auto back = [&](std::string_view text) {
    Words out;
    for (const std::uint16_t n : encoder.numbers(text))
      out.push_back(pieces.text->vocabulary.words().at(n - 1u));
    return out;
  };
  // By Hugging Face's tokenizers 0.22.
  EXPECT_EQ(back("unaffable embeddings"),
            (Words{"una", "##ffa", "##ble", "em", "##bed", "##ding", "##s"}));
  EXPECT_EQ(back("stra\u00dfe \u00c5NGSTR\u00d6M"), (Words{"st", "##ra\u00dfe", "ang", "##strom"}));
  EXPECT_EQ(back("\ud55c \U0001f600 smile"),
            (Words{"\u1112", "##\u1161", "##\u11ab", "[UNK]", "smile"}));
}

}  // namespace
}  // namespace cudp
