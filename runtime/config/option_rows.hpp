#pragma once
// Functions that make rows of the table of options, one for each kind of value. A row stores its
// value in a member of TrainConfig or of a method's own options.
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/config/choices.hpp"
#include "runtime/config/option.hpp"

namespace cudp::option_rows {

using Range = ValueRange;

// Ranges of valid numbers. Their limits are well inside the range of a float.
inline constexpr Range kPositive{
    .low = 1e-30, .high = 1e30, .text = "a number > 0 (1e-30 to 1e30)"};
inline constexpr Range kMultiple{.low = 1.0, .high = 1000.0, .text = "a number of 1 to 1000"};
inline constexpr Range kUnitPositive{.low = 1e-6, .high = 1.0, .text = "a number of 1e-6 to 1"};
inline constexpr Range kVariance{.low = 1e-20, .high = 1e20, .text = "a number of 1e-20 to 1e20"};
inline constexpr Range kNotNegative{.low = 0.0, .high = 1e30, .text = "a number >= 0 (up to 1e30)"};
inline constexpr Range kInsideUnit{
    .low = 0.0, .high = 1.0, .text = "a number in (0, 1)", .low_open = true, .high_open = true};
inline constexpr Range kBelowOne{
    .low = 0.0, .high = 1.0, .text = "a number in [0, 1)", .high_open = true};
inline constexpr Range kShrink{
    .low = 0.0, .high = 1.0, .text = "a number in (0, 1]", .low_open = true};
inline constexpr Range kUnit{.low = 0.0, .high = 1.0, .text = "a number in [0, 1]"};
// Range of counts, such as the batch size: well inside 2^31, so that count * 2^32 fits in 64 bits.
inline constexpr Range kCount{.low = 1.0, .high = 1e9, .text = "a whole number of 1 to 1000000000"};
inline constexpr Range kCountOrZero{
    .low = 0.0, .high = 1e9, .text = "a whole number of 0 to 1000000000"};
inline constexpr Range kThreads{.low = 0.0, .high = 4096.0, .text = "a whole number of 0 to 4096"};
inline constexpr Range kWhole{.low = 0.0, .high = 0x1p62, .text = "a whole number >= 0"};
// Ranges for numbers with which a command computes in double, not in float. privacy/ checks
// narrower limits later.
inline constexpr Range kAboveZero{.low = 0.0, .text = "a number > 0", .low_open = true};
inline constexpr Range kFromZero{.low = 0.0, .text = "a number >= 0"};

/// Returns the parts of a list, which is a text with commas between the parts. place: position of
/// the value, for messages. Throws InputError if the value is not a text.
std::vector<std::string> parts_of(const Value& value, const std::string& place);

/// Parses a number. place: position of the text, for messages. Throws InputError unless the text is
/// a number in the range.
double number_in(const ValueRange& range, const std::string& text, const std::string& place);

/// Throws InputError with the text "PLACE: expected EXPECTED, found FOUND".
[[noreturn]] void refuse(const std::string& place, const std::string& expected, const Value& found);

template <class T>
struct Inner {
  using type = T;
  static constexpr bool optional = false;
};
template <class T>
struct Inner<std::optional<T>> {
  using type = T;
  static constexpr bool optional = true;
};

/// Returns the struct of type Owner in a config, in which an option's value is a member: the config
/// itself if Owner is TrainConfig, else the struct of a method's or command's options that the
/// config stores.
template <class Owner>
Owner& owner_of(TrainConfig& c) {
  if constexpr (std::is_same_v<Owner, TrainConfig>)
    return c;
  else
    return c.of<Owner>();
}
template <class Owner>
const Owner& owner_of(const TrainConfig& c) {
  if constexpr (std::is_same_v<Owner, TrainConfig>)
    return c;
  else
    return c.of<Owner>();
}

template <class T>
Value as_value(const T& x) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<std::int64_t>(x);
  else
    return x;
}

/// Makes an option whose value is stored in `member`, of type T or optional<T>. convert(value,
/// place): converts the user's value to T, or throws InputError if it is not valid. value_name:
/// placeholder for the value in --help.
template <class Owner, class M, class Convert>
Option row(const char* key, const char* value_name, const char* help, ValueKind kind,
           M Owner::*member, Convert convert) {
  Option o;
  o.key = key;
  o.value_name = value_name;
  o.help = help;
  o.kind = kind;
  o.set = [member, convert](TrainConfig& c, const Value& v, const std::string& place) {
    owner_of<Owner>(c).*member = static_cast<typename Inner<M>::type>(convert(v, place));
  };
  o.get = [member](const TrainConfig& c) -> std::optional<Value> {
    const M& value = owner_of<Owner>(c).*member;
    if constexpr (Inner<M>::optional) {
      if (!value) return std::nullopt;
      return as_value(*value);
    } else {
      return as_value(value);
    }
  };
  if constexpr (Inner<M>::optional)
    o.clear = [member](TrainConfig& c) { (owner_of<Owner>(c).*member).reset(); };
  return o;
}

template <class Owner, class M>
Option number(const char* key, const char* value_name, M Owner::*member, Range range,
              const char* help) {
  Option o = row(key, value_name, help, ValueKind::number, member,
                 [range](const Value& v, const std::string& place) {
                   const auto* whole = std::get_if<std::int64_t>(&v);
                   const auto* real = std::get_if<double>(&v);
                   const double x = whole  ? static_cast<double>(*whole)
                                    : real ? *real
                                           : std::numeric_limits<double>::quiet_NaN();
                   if (!range.contains(x)) refuse(place, range.text, v);
                   return x;
                 });
  o.range = range;
  return o;
}

template <class Owner, class M>
Option integer(const char* key, const char* value_name, M Owner::*member, Range range,
               const char* help) {
  Option o = row(key, value_name, help, ValueKind::integer, member,
                 [range](const Value& v, const std::string& place) {
                   const auto* x = std::get_if<std::int64_t>(&v);
                   if (!x || !range.contains(static_cast<double>(*x))) refuse(place, range.text, v);
                   return *x;
                 });
  o.range = range;
  return o;
}

template <class Owner, class M>
Option text(const char* key, const char* value_name, M Owner::*member, const char* help) {
  return row(key, value_name, help, ValueKind::text, member,
             [](const Value& v, const std::string& place) {
               const auto* x = std::get_if<std::string>(&v);
               if (!x || x->empty()) refuse(place, "a text", v);
               return *x;
             });
}

template <class Owner>
Option toggle(const char* key, bool Owner::*member, const char* help) {
  return row(key, "", help, ValueKind::toggle, member,
             [](const Value& v, const std::string& place) {
               const auto* x = std::get_if<bool>(&v);
               if (!x) refuse(place, "true or false", v);
               return *x;
             });
}

/// Makes an option whose value is a comma-separated list of texts, or of numbers in `range`.
/// value_name: placeholder for the value in --help.
template <class Owner, class T>
Option list(const char* key, const char* value_name, std::vector<T> Owner::*member, Range range,
            const char* help) {
  Option o;
  o.key = key;
  o.value_name = value_name;
  o.help = help;
  o.kind = ValueKind::list;
  o.set = [member, range](TrainConfig& c, const Value& v, const std::string& place) {
    std::vector<T>& all = owner_of<Owner>(c).*member;
    all.clear();
    for (const std::string& part : parts_of(v, place)) {
      if constexpr (std::is_same_v<T, std::string>)
        all.push_back(part);
      else
        all.push_back(number_in(range, part, place));
    }
  };
  o.get = [](const TrainConfig&) -> std::optional<Value> { return std::nullopt; };
  return o;
}

/// Returns the option `o`, changed so that its value must be one of the texts in `names`.
inline Option one_of(Option o, std::vector<std::string> names) {
  o.choices = std::move(names);
  o.set = [set = o.set, names = o.choices](TrainConfig& c, const Value& v,
                                           const std::string& place) {
    std::string list;
    for (const std::string& name : names) {
      if (v == Value(name)) return set(c, v, place);
      list += (list.empty() ? "" : ", ") + name;
    }
    refuse(place, names.size() == 1 ? list : "one of " + list, v);
  };
  return o;
}

/// Makes an option whose value is an enumeration value, which the user gives by its name. choices:
/// the values with their names; must outlive the option.
template <class Owner, class E>
Option choice(const char* key, E Owner::*member, std::span<const Choice<E>> choices,
              const char* help) {
  Option o;
  o.key = key;
  o.value_name = "NAME";
  o.help = help;
  o.set = [member, choices](TrainConfig& c, const Value& v, const std::string&) {
    for (const Choice<E>& choice : choices)
      if (v == Value(std::string(choice.name))) owner_of<Owner>(c).*member = choice.value;
  };
  o.get = [member, choices](const TrainConfig& c) -> std::optional<Value> {
    return Value(std::string(choice_name<E>(choices, owner_of<Owner>(c).*member)));
  };
  std::vector<std::string> names;
  for (const Choice<E>& c : choices) names.emplace_back(c.name);
  return one_of(std::move(o), std::move(names));
}
template <class Owner, class E, std::size_t n>
Option choice(const char* key, E Owner::*member, const Choice<E> (&choices)[n], const char* help) {
  return choice(key, member, std::span<const Choice<E>>(choices), help);
}

inline Option positional(Option o) {
  o.positional = true;
  return o;
}

/// Returns the option `o`, changed so that it is given by position instead of by name, and may be
/// left out.
inline Option optional_positional(Option o) {
  o.may_lack = true;
  return positional(std::move(o));
}

/// Returns the option `o`, changed so that it has no effect unless the option with the key `key` is
/// set.
inline Option needs(const char* key, Option o) {
  o.needs = key;
  return o;
}

inline Option scoped(Scope scope, Option o) {
  o.scope = scope;
  return o;
}
inline Option origin(Option o) { return scoped(Scope::origin, std::move(o)); }
inline Option machine(Option o) { return scoped(Scope::machine, std::move(o)); }
inline Option command(Option o) { return scoped(Scope::command, std::move(o)); }

inline Option with(const char* key, Option o) {
  o.listed_after = key;
  return o;
}

inline Option instead_of(const char* group, Option o) {
  o.instead_of = group;
  return o;
}

}  // namespace cudp::option_rows
