#include "runtime/data/text_table.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace cudp {
namespace {

constexpr std::size_t kEnds = 16;  // number of bytes of a text that Ends covers

template <class T>
std::uint64_t load(const char* at) {
  T word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

std::uint64_t mixed(std::uint64_t h, std::uint64_t word) {
  h = (h ^ word) * 0xbf58476d1ce4e5b9u;
  return h ^ h >> 32;
}

}  // namespace

TextTable::Ends TextTable::ends_of(std::string_view text) {
  const char* const at = text.data();
  const std::size_t size = text.size();
  if (size >= 8) return {load<std::uint64_t>(at), load<std::uint64_t>(at + size - 8)};
  if (size >= 4) return {load<std::uint32_t>(at), load<std::uint32_t>(at + size - 4)};
  if (size == 0) return {};
  // A text of up to three bytes consists of its first, middle and last byte.
  return {load<std::uint8_t>(at) | load<std::uint8_t>(at + size / 2) << 8,
          load<std::uint8_t>(at + size - 1)};
}

TextTable::TextTable(std::span<const std::string> texts)
    : slots_(std::bit_ceil(2 * texts.size() + 1)) {
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  bytes_.reserve(bytes);
  for (const std::string& text : texts) {
    const Ends ends = ends_of(text);
    Slot& slot = slots_[slot_of(text, ends)];
    if (slot.position != kNone) continue;
    slot = {ends, bytes_.size(), static_cast<std::uint32_t>(text.size()),
            static_cast<std::int32_t>(&text - texts.data())};
    bytes_ += text;
  }
}

std::size_t TextTable::slot_of(std::string_view text, const Ends& ends) const {
  std::uint64_t hash = mixed(mixed(text.size(), ends.first), ends.last);
  // Hashes the bytes between the ends, too, so that texts with equal ends get different slots.
  for (std::size_t i = 8; i + 8 < text.size(); i += 8)
    hash = mixed(hash, load<std::uint64_t>(text.data() + i));
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.position == kNone) return at;
    if (slot.ends != ends || slot.size != text.size()) continue;
    if (text.size() <= kEnds ||
        std::memcmp(bytes_.data() + slot.begin, text.data(), text.size()) == 0)
      return at;
  }
}

int TextTable::find(std::string_view text) const {
  return slots_.empty() ? kNone : slots_[slot_of(text, ends_of(text))].position;
}

}  // namespace cudp
