#include "tests/support/ptx/module.hpp"

#include <algorithm>

#include "tests/support/ptx/text.hpp"

namespace cudp::ptx {

namespace {

/// Blanks take the place of comments, so that lines stay where they are.
void remove_comments(std::string& text) {
  for (std::size_t i = 0; i + 1 < text.size();) {
    if (text[i] == '"') {
      i = std::min(text.find('"', i + 1), text.size() - 1) + 1;
      continue;
    }
    const bool is_line = text[i] == '/' && text[i + 1] == '/';
    if (!is_line && (text[i] != '/' || text[i + 1] != '*')) {
      ++i;
      continue;
    }
    std::size_t end = is_line ? text.find('\n', i) : text.find("*/", i + 2);
    if (end == std::string::npos) {
      end = text.size();
    } else if (text[end] == '*') {
      end += 2;
    }
    for (; i < end; ++i)
      if (text[i] != '\n') text[i] = ' ';
  }
}

/// Reads a module's statements outside of kernels.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ == text_.size();
  }
  std::string_view word() {
    if (at_end()) throw Fault("ptx: the text ends too early");
    const std::size_t from = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  /// Up to the character and past it.
  std::string_view until(char c) {
    const std::size_t from = at_;
    at_ = text_.find(c, at_);
    if (at_ == std::string_view::npos) throw Fault(std::string("ptx: there is no ") + c);
    return text_.substr(from, at_++ - from);
  }
  /// Past the braces that open next and all between them.
  void skip_braces() {
    until('{');
    for (int depth = 1; depth > 0; ++at_) {
      if (at_ == text_.size()) throw Fault("ptx: a brace is not closed");
      if (text_[at_] == '{') ++depth;
      if (text_[at_] == '}') --depth;
    }
  }
  std::size_t at() const { return at_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

u32 bytes_of_type(std::string_view type) {
  for (const auto& [names, bytes] : {std::pair{" .b8 .u8 .s8 ", 1u},
                                     {" .b16 .u16 .s16 ", 2u},
                                     {" .b32 .u32 .s32 .f32 ", 4u},
                                     {" .b64 .u64 .s64 .f64 ", 8u}})
    if (std::string_view(names).find(' ' + std::string(type) + ' ') != std::string_view::npos)
      return bytes;
  throw Fault("ptx: unknown type " + std::string(type));
}

}  // namespace

Declaration parse_declaration(const std::vector<std::string_view>& words) {
  Declaration d;
  u32 align = 0, element = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view w = words[i];
    if (w == ".align" && i + 1 < words.size()) {
      align = parse_number<u32>(words[++i]);
    } else if (w == ".ptr" && i + 2 < words.size() && words[i + 1] == ".align") {
      i += 2;  // what the parameter points to
    } else if (w.starts_with('.')) {
      if (element != 0) throw Fault("ptx: unknown declaration " + std::string(w));
      element = bytes_of_type(w);
    } else if (i + 1 == words.size()) {
      const auto bracket = w.find('[');
      d.name = w.substr(0, bracket);
      d.bytes = element;
      if (bracket != std::string_view::npos) {
        if (w.back() != ']') throw Fault("ptx: unknown declaration " + std::string(w));
        const auto count = w.substr(bracket + 1, w.size() - bracket - 2);
        d.sized = !count.empty();
        d.bytes = d.sized ? element * parse_number<u32>(count) : 0;
      }
    } else {
      throw Fault("ptx: unknown declaration " + std::string(w));
    }
  }
  d.align = align != 0 ? align : element;
  if (d.name.empty() || element == 0 || (d.align & (d.align - 1)) != 0)
    throw Fault("ptx: unknown declaration " + std::string(words.empty() ? "" : words.back()));
  return d;
}

Module::Module(std::string text) : text_(std::move(text)) {
  while (!text_.empty() && text_.back() == '\0') text_.pop_back();
  remove_comments(text_);
  Reader read(text_);
  while (!read.at_end()) {
    const std::string directive(read.word());
    if (directive == ".version") {
      if (split_at_spaces(read.until('\n')).size() != 1) throw Fault("ptx: unknown version");
    } else if (directive == ".target") {
      const auto target = split_at_spaces(read.until('\n'));
      if (target.size() != 1 || !target[0].starts_with("sm_")) throw Fault("ptx: unknown target");
      auto number = target[0].substr(3);
      if (number.ends_with('a')) number = number.substr(0, number.size() - 1);  // sm_100a
      target_ = parse_number<u32>(number);
    } else if (directive == ".address_size") {
      if (trim(read.until('\n')) != "64") throw Fault("ptx: addresses that have not 64 bits");
    } else if (directive == ".file") {
      const u32 number = parse_number<u32>(read.word());
      read.until('"');
      files_[number] = read.until('"');
      read.until('\n');
    } else if (directive == ".section") {
      if (!read.word().starts_with(".debug_")) throw Fault("ptx: unknown section");
      read.skip_braces();
    } else if (directive == ".visible" || directive == ".weak") {
      // what follows is a kernel, or is not known
    } else if (directive == ".entry") {
      const std::string name(read.word());
      Entry e;
      e.begin = read.at();
      read.skip_braces();
      e.end = read.at();
      if (!entries_.emplace(name, e).second) throw Fault("ptx: two kernels are named " + name);
    } else if (directive == ".extern" || directive == ".shared") {
      if (directive == ".extern" && read.word() != ".shared")
        throw Fault("ptx: unknown external declaration");
      shared_.emplace_back(read.until(';'));
    } else {
      throw Fault("ptx: unknown directive " + directive + std::string(text_, read.at(), 40));
    }
  }
}

Kernel* Module::find(const std::string& name) {
  if (!entries_.contains(name)) return nullptr;
  auto& kernel = parsed_[name];
  if (kernel == nullptr) kernel = parse_kernel(*this, name);
  return kernel.get();
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::string_view Module::text(const Place& p) const {
  return std::string_view(text_).substr(p.at, p.size);
}

std::string Module::source(const Place& p) const {
  const auto file = files_.find(p.file);
  return file == files_.end() ? "" : file->second + ":" + std::to_string(p.source_line);
}

}  // namespace cudp::ptx
