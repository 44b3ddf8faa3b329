#include "runtime/data/text_table.hpp"

#include <bit>
#include <charconv>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/data/csv.hpp"
#include "runtime/data/table.hpp"

namespace cudp {
namespace {

using Random = std::mt19937_64;

/// Texts of few letters, so that many are alike but for one byte, at any place.
std::string some_text(Random& random, std::size_t max_size, std::string_view letters) {
  std::string text(random() % (max_size + 1), ' ');
  for (char& c : text) c = letters[random() % letters.size()];
  return text;
}

TEST(TextTable, FindsWhatAMapFinds) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::string> texts(random() % 300);
    for (std::string& text : texts)
      text = some_text(random, 1 + i % 40, std::string_view("ab\0", 3));
    std::map<std::string, int> expected;
    for (std::size_t k = 0; k < texts.size(); ++k) expected.emplace(texts[k], static_cast<int>(k));
    const TextTable table(texts);
    for (const auto& [text, position] : expected) ASSERT_EQ(table.find(text), position);
    for (int k = 0; k < 300; ++k) {
      const std::string text = some_text(random, 1 + i % 40, "ab");
      const auto found = expected.find(text);
      ASSERT_EQ(table.find(text), found == expected.end() ? TextTable::kNone : found->second);
    }
  }
  EXPECT_EQ(TextTable().find(""), TextTable::kNone);
  EXPECT_EQ(TextTable(std::vector<std::string>{""}).find(""), 0);
}

/// Texts that differ in the middle alone do not fill one place of the table.
TEST(TextTable, LongListsOfLongTextsAreFoundAtOnce) {
  constexpr int kTexts = 200'000;
  std::vector<std::string> texts;
  texts.reserve(kTexts);
  for (int i = 0; i < kTexts; ++i)
    texts.push_back("https://example.org/" + std::to_string(1'000'000 + i) + "/the-same-end");
  const TextTable table(texts);
  for (std::size_t i = 0; i < texts.size(); ++i)
    ASSERT_EQ(table.find(texts[i]), static_cast<int>(i));
}

/// The numbers of cells are those of std::from_chars to the last bit, and so is what is none.
TEST(TextTable, ShortNumbersAreFromChars) {
  Random random(2);
  const auto expected = [](std::string_view text) -> std::optional<double> {
    double value = 0.0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size() || !std::isfinite(value))
      return std::nullopt;
    return value;
  };
  std::vector<std::string> texts = {"",
                                    "-",
                                    ".",
                                    "-.",
                                    "1.",
                                    ".5",
                                    "-0",
                                    "-0.0",
                                    "1.2.3",
                                    "0x1",
                                    "1e5",
                                    "--1",
                                    "1-",
                                    "inf",
                                    "nan",
                                    " 1",
                                    "1 ",
                                    "00012",
                                    "9007199254740993",
                                    "999999999999999",
                                    "9999999999999999",
                                    "0.000000000000001",
                                    "-99999999.9999999",
                                    "\xff",
                                    "1\xff",
                                    "0.1",
                                    "123456789012345.6"};
  for (int i = 0; i < 200'000; ++i)
    texts.push_back(some_text(random, 18, i % 2 == 0 ? "0123456789." : "0123456789.-e"));
  for (int i = 0; i < 200'000; ++i) {
    std::string text = std::to_string(random() % 1'000'000'000'000'000);
    text.insert(random() % text.size(), i % 3 == 0 ? "" : ".");
    texts.push_back((i % 2 == 0 ? "-" : "") + text);
  }
  for (const std::string& text : texts) {
    const auto got = parse_number(text), want = expected(text);
    ASSERT_EQ(got.has_value(), want.has_value()) << text;
    if (got) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(*got), std::bit_cast<std::uint64_t>(*want)) << text;
    }
  }
}

/// Rows without quotes are split at every delimiter, whatever bytes are in them and however long
/// they are.
TEST(CellSplitter, PlainRowsAreSplitAtEveryDelimiter) {
  Random random(3);
  for (const char delimiter : {',', '\t', ';', '\0', '\x80'}) {
    CellSplitter splitter(delimiter);
    for (int i = 0; i < 20'000; ++i) {
      const std::string letters = std::string("a \t\x81\x7f") + delimiter + delimiter;
      const std::string row = some_text(random, 40, letters);
      std::vector<std::string_view> expected;
      std::string_view rest = row;
      for (;;) {
        const std::size_t end = rest.find(delimiter);
        std::string_view cell = rest.substr(0, end);
        while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t'))
          cell.remove_prefix(1);
        while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t')) cell.remove_suffix(1);
        expected.push_back(cell);
        if (end == std::string_view::npos) break;
        rest.remove_prefix(end + 1);
      }
      const auto cells = splitter.split(row);
      ASSERT_TRUE(splitter.fault().expected.empty());
      ASSERT_EQ(std::vector<std::string_view>(cells.begin(), cells.end()), expected) << row;
    }
  }
}

}  // namespace
}  // namespace cudp
