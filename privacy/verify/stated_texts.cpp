#include "privacy/verify/stated_texts.hpp"

#include <cstddef>
#include <string_view>

namespace cudp::verify {
namespace {

bool has_only(const std::string& text, std::string_view characters, std::size_t longest) {
  return !text.empty() && text.size() <= longest &&
         text.find_first_not_of(characters) == std::string::npos;
}

/// Characters of version numbers.
constexpr std::string_view kDigits = "0123456789.";
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

}  // namespace

bool is_version(const std::string& text) { return has_only(text, kDigits, 20); }

bool is_commit(const std::string& text) {
  constexpr std::string_view kDirty = "-dirty";
  const std::string hash =
      text.ends_with(kDirty) ? text.substr(0, text.size() - kDirty.size()) : text;
  return text == "unknown" || has_only(hash, "0123456789abcdef", 64);
}

bool is_compiler(const std::string& text) {
  const std::size_t space = text.find(' ');
  return space != std::string::npos && has_only(text.substr(0, space), kLetters, 20) &&
         has_only(text.substr(space + 1), kDigits, 20);
}

bool is_backend(const std::string& text) {
  return has_only(text, "abcdefghijklmnopqrstuvwxyz0123456789:-", 20);
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && has_only(text, "0123456789abcdef", 64);
}

bool is_earlier_training(const std::string& text) {
  constexpr std::string_view kBegin = "cudp trained the file on '";
  constexpr std::string_view kUnknown =
      "' and no certificate is beside it: what it may show of those rows is not counted here";
  constexpr std::string_view kUnpublished =
      "' in a run that is not for release: what it may show of those rows is not counted here";
  constexpr std::string_view kEpsilon = "': epsilon ", kDelta = " at delta ";
  constexpr std::string_view kEnd = " of that run is not counted here";
  if (!text.starts_with(kBegin)) return false;
  if (text.ends_with(kUnknown) || text.ends_with(kUnpublished)) return true;
  const std::size_t epsilon = text.rfind(kEpsilon), delta = text.rfind(kDelta);
  if (epsilon == std::string::npos || delta == std::string::npos || delta < epsilon ||
      !text.ends_with(kEnd))
    return false;
  constexpr std::string_view kNumber = "0123456789.e+-";
  const std::size_t from = epsilon + kEpsilon.size(), then = delta + kDelta.size();
  return then <= text.size() - kEnd.size() &&
         has_only(text.substr(from, delta - from), kNumber, 12) &&
         has_only(text.substr(then, text.size() - kEnd.size() - then), kNumber, 12);
}

}  // namespace cudp::verify
