#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

/// Finds the index of a text in a list, in one or two memory accesses. A hash table with open
/// addressing; at least half of the slots are free.
class TextTable {
 public:
  static constexpr int kNone = -1;

  TextTable() = default;
  explicit TextTable(std::span<const std::string> texts);

  /// Returns the index of `text` in the list (the first if it occurs twice), or kNone.
  int find(std::string_view text) const;

 private:
  /// First and last 8 bytes of a text. Together with its size they determine a text of up to 16
  /// bytes.
  struct Ends {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    bool operator==(const Ends&) const = default;
  };
  /// A slot of the hash table: a text, and its index in the list (`position`, kNone if the slot is
  /// free).
  struct Slot {
    Ends ends;
    std::uint64_t begin = 0;  // offset of the text in bytes_
    std::uint32_t size = 0;
    std::int32_t position = kNone;
  };

  static Ends ends_of(std::string_view text);
  /// Returns the index of the slot that contains the text. If no slot contains it, returns the
  /// index of the free slot in which the text would be stored. ends: first and last bytes of the
  /// text.
  std::size_t slot_of(std::string_view text, const Ends& ends) const;

  std::vector<Slot> slots_;  // size a power of two, or 0
  std::string bytes_;        // the texts, one after another
};

}  // namespace cudp
