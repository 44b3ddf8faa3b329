#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

/// Tells which of a list of texts a text is, in one or two looks at memory: open addressing, at
/// least half of the slots free.
class TextTable {
 public:
  static constexpr int kNone = -1;

  TextTable() = default;
  explicit TextTable(std::span<const std::string> texts);

  /// The position of `text` in the list, its first where it is there twice; kNone where it is not.
  int find(std::string_view text) const;

 private:
  /// Bytes of a text in two words, which together with its size are all of a text of up to 16.
  struct Ends {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    bool operator==(const Ends&) const = default;
  };
  struct Slot {
    Ends ends;
    std::uint64_t begin = 0;  // in bytes_
    std::uint32_t size = 0;
    std::int32_t position = kNone;
  };

  static Ends ends_of(std::string_view text);
  /// The slot that has the text, or the free one where it would be.
  std::size_t slot_of(std::string_view text, const Ends& ends) const;

  std::vector<Slot> slots_;  // a power of two of them, or none
  std::string bytes_;        // the texts, one behind the other
};

}  // namespace cudp
