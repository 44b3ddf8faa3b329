#include "runtime/data/csv.hpp"

#include <cstring>

namespace cudp {
namespace {

constexpr std::size_t kFirstBuffer = std::size_t{64} << 10;
constexpr std::size_t kLongestLine = std::size_t{16} << 20;

}  // namespace

bool LineReader::read_more() {
  if (ended_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ >= kLongestLine)
    bad_input(file(), "line " + std::to_string(number_ + 1), "a line of at most 16 MiB",
              "a longer one");
  if (end_ == buffer_.size()) buffer_.resize(buffer_.empty() ? kFirstBuffer : 2 * buffer_.size());
  const std::size_t n = bytes_.read(std::span(buffer_).subspan(end_));
  end_ += n;
  ended_ = end_ < buffer_.size();
  return n > 0;
}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = begin_;
  for (;;) {
    const char* const text = reinterpret_cast<const char*>(buffer_.data());
    const auto* found =
        end_ > searched
            ? static_cast<const char*>(std::memchr(text + searched, '\n', end_ - searched))
            : nullptr;
    if (found != nullptr) {
      const auto at = static_cast<std::size_t>(found - text);
      line = {text + begin_, at - begin_};
      begin_ = at + 1;
      break;
    }
    const std::size_t kept = end_ - begin_;
    if (read_more()) {
      searched = kept;  // the kept part moved to the front
      continue;
    }
    if (begin_ == end_) return false;
    line = {reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_};
    begin_ = end_;
    break;
  }
  if (number_++ == 0 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::span<const std::string_view> CellSplitter::split(const LineReader& at, std::string_view line) {
  cells_.clear();
  unquoted_.clear();
  unquoted_.reserve(line.size());
  std::string_view rest = delimiter_ == ' ' ? trimmed(line) : line;
  for (;;) {
    // Blanks before a cell are not part of it, but a tab may be the delimiter.
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    if (quotes_ && rest.starts_with('"')) {
      cells_.push_back(take_quoted(at, rest));
    } else {
      const std::size_t end = rest.find(delimiter_);
      cells_.push_back(trimmed(rest.substr(0, end)));
      rest.remove_prefix(std::min(end, rest.size()));
    }
    if (rest.empty()) return cells_;
    rest.remove_prefix(1);  // the delimiter
  }
}

std::string_view CellSplitter::take_quoted(const LineReader& at, std::string_view& rest) {
  const auto fail = [&](const char* expected, std::string_view found) {
    bad_input(at.file(), "line " + std::to_string(at.number()), expected, found);
  };
  const std::size_t start = unquoted_.size();
  rest.remove_prefix(1);
  for (;;) {
    const std::size_t quote = rest.find('"');
    if (quote == std::string_view::npos) fail("a closing double quote", "the end of the line");
    unquoted_ += rest.substr(0, quote);
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    unquoted_ += '"';
    rest.remove_prefix(1);
  }
  while (!rest.empty() && rest.front() == ' ' && delimiter_ != ' ') rest.remove_prefix(1);
  if (!rest.empty() && rest.front() != delimiter_)
    fail("a delimiter after a closing double quote", shown(rest));
  return std::string_view(unquoted_).substr(start);
}

}  // namespace cudp
