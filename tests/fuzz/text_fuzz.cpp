#include <algorithm>

#include "runtime/data/table_reader.hpp"
#include "runtime/data/word_vectors.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace cudp {
namespace {

constexpr const char* kSchema = R"(
header = false
delimiter = "\t"
quotes = false
columns = [
  {name = "a", kind = "label", values = ["0", "1"]},
  {name = "b", kind = "text"},
])";

void read_texts(std::span<const std::uint8_t> bytes, Tokenizer tokenizer, Keep keep, Marks marks) {
  const TextOptions options{.tokens = 5, .keep = keep, .tokenizer = tokenizer};
  const TextCoder coder{
      options, Vocabulary({"the", "film", "don't", "un", "##do", "##\u00e9", "\u4e2d", "!"}, marks),
      nullptr, ""};
  const TableSchema schema = parse_schema(kSchema, "schema");
  const Dataset set =
      cudp::read_table(*memory_bytes("fuzz", bytes), schema, {.coder = &coder, .ahead = false}, 0);
  must_hold(set.lengths.size() == set.size());
  must_hold(set.tokens.size() == set.size() * 5 && set.floats.empty());
  for (std::size_t i = 0; i < set.tokens.size(); ++i) {
    must_hold(set.tokens[i] < set.words);
    must_hold(i % 5 < set.lengths[i / 5] || set.tokens[i] == 0);
  }
}

void read_list(std::span<const std::uint8_t> bytes) {
  std::vector<std::string> words = read_words(*memory_bytes("fuzz", bytes));
  must_hold(!words.empty());
  check_word_count(words.size(), Marks::four, "fuzz");
  const Vocabulary v(words, Marks::four);
  for (std::size_t i = 0; i < words.size(); ++i) must_hold(v.number(words[i]) == i + 4);
  const std::string text = v.text();
  must_hold(read_words(*memory_bytes("again", {reinterpret_cast<const std::uint8_t*>(text.data()),
                                               text.size()})) == words);
}

void read_table(std::span<const std::uint8_t> bytes) {
  VectorTable table = read_vectors(*memory_bytes("fuzz", bytes), "");
  const WordVectors& v = table.vectors;
  must_hold(v.rows > 0 && v.columns > 0);
  must_hold(v.values.size() ==
            static_cast<std::size_t>(v.rows) * static_cast<std::size_t>(v.columns));
  must_hold(table.words.empty() || table.words.size() == static_cast<std::size_t>(v.rows));
  const auto of_words = vectors_of(Vocabulary({"don't"}, Marks::none_but_zero), table);
  must_hold(of_words->rows == 2);
  if (v.columns > 8) return;  // eigenvectors of large matrices take long
  reduce(table, 1);
  must_hold(table.vectors.values.size() == static_cast<std::size_t>(v.rows));
}

}  // namespace
}  // namespace cudp

/// The first byte says what the others are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  return refuse_or_pass([&] {
    switch (data[0] % 4) {
      case 0:
        return read_list(bytes);
      case 1:
        return read_table(bytes);
      default:
        return read_texts(bytes, data[0] % 4 == 2 ? Tokenizer::words : Tokenizer::wordpiece,
                          (data[0] & 4) != 0 ? Keep::last : Keep::first,
                          (data[0] & 8) != 0 ? Marks::four : Marks::none_but_zero);
    }
  });
}
