#include "runtime/base/safetensors.hpp"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

TensorFile small() {
  const Network net =
      build_network(parse_model(builtin_model("logistic"), "logistic", 3), {4, 1, 1}, 3);
  TensorFile file;
  file.tensors = net.parameters;
  for (std::size_t i = 0; i < net.parameter_count; ++i)
    file.values.push_back(0.5f * static_cast<float>(i) - 3.0f);
  file.metadata = {{"format", "pt"}, {"model", "line one\nline \"two\"\n"}};
  return file;
}

/// A file with this header, and `size` bytes of data.
std::string with_header(const std::string& json, std::size_t size) {
  const std::uint64_t length = json.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes + json + std::string(size, '\0');
}

TEST(Safetensors, IsTheFormatOfItsSpecification) {
  const std::string bytes = encode_safetensors(small());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["linear.weight"]["dtype"], "F32");
  EXPECT_EQ(header["linear.weight"]["shape"], (std::vector<int>{3, 4}));
  EXPECT_EQ(header["linear.weight"]["data_offsets"], (std::vector<int>{0, 48}));
  EXPECT_EQ(header["linear.bias"]["data_offsets"], (std::vector<int>{48, 60}));
  EXPECT_EQ(header["__metadata__"]["format"], "pt");
  EXPECT_EQ(bytes.size(), 8 + length + 60);
  float second = 0.0f;
  std::memcpy(&second, bytes.data() + 8 + length + 4, 4);
  EXPECT_EQ(second, -2.5f);
  EXPECT_EQ(encode_safetensors(small()), bytes);
}

TEST(Safetensors, ReadsWhatItWrites) {
  const TensorFile file = small();
  const TensorFile back = decode_safetensors(encode_safetensors(file), "m");
  EXPECT_EQ(back.values, file.values);
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.tensors[i].name, file.tensors[i].name);
    EXPECT_EQ(back.tensors[i].shape, file.tensors[i].shape);
    EXPECT_EQ(back.tensors[i].offset, file.tensors[i].offset);
  }
}

TEST(Safetensors, RefusesWhatIsMalformed) {
  const std::string whole = encode_safetensors(small());
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_THROW(decode_safetensors(whole.substr(0, cut), "m"), InputError) << cut;
  EXPECT_THROW(decode_safetensors(whole + "x", "m"), InputError);
  EXPECT_THROW(decode_safetensors(std::string(8, '\xff'), "m"), InputError);
  for (const char* header : {
           "[]",
           "not json",
           "{\"a\":1}",
           "{\"__metadata__\":1}",
           R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
           (R"({"a":{"dtype":"F32","shape":[2147483647,2147483647,2147483647],)"
            R"("data_offsets":[0,4]}})"),
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})",
           R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,0]}})",
       })
    EXPECT_THROW(decode_safetensors(with_header(header, 4), "m"), InputError) << header;
  EXPECT_NO_THROW(decode_safetensors(
      with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4), "m"));
}

TEST(Safetensors, ReadsAMatrixOfHalves) {
  // 1, -2, 65504, 2^-24, 2^-14, -0.33325195, 0, -0 as IEEE 754 binary16, little-endian.
  const std::string halves("\x00\x3c\x00\xc0\xff\x7b\x01\x00\x00\x04\x55\xb5\x00\x00\x00\x80", 16);
  const std::string header = R"({"e":{"dtype":"F16","shape":[4,2],"data_offsets":[0,16]}})";
  const std::string bytes = with_header(header, 0) + halves;
  const Matrix m = decode_matrix(bytes, "m", "");
  EXPECT_EQ(m.rows, 4);
  EXPECT_EQ(m.columns, 2);
  EXPECT_EQ(m.values, (std::vector<float>{1.0f, -2.0f, 65504.0f, 0x1p-24f, 0x1p-14f, -0.33325195f,
                                          0.0f, -0.0f}));
  EXPECT_TRUE(std::signbit(m.values[7]));
  EXPECT_EQ(decode_matrix(bytes, "m", "e").values, m.values);
  EXPECT_THROW(decode_matrix(bytes, "m", "other"), InputError);
  EXPECT_THROW(decode_matrix(bytes.substr(0, bytes.size() - 1), "m", ""), InputError);
  const std::string infinite =
      with_header(header, 0) + std::string("\x00\x7c", 2) + halves.substr(2);
  EXPECT_THROW(decode_matrix(infinite, "m", ""), InputError);
}

/// Numbers of any floating-point type, at any offset; whole numbers are left out.
TEST(Safetensors, ReadsTensorsOfAllFloatingPointTypes) {
  const std::string header = R"({"half":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},)"
                             R"("float":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},)"
                             R"("brain":{"dtype":"BF16","shape":[2],"data_offsets":[10,14]},)"
                             R"("ids":{"dtype":"I64","shape":[1],"data_offsets":[14,22]},)"
                             R"("double":{"dtype":"F64","shape":[1],"data_offsets":[22,30]}})";
  const float floats[] = {1.5f, -0x1p-149f};
  const double wide = 1.0 + 0x1p-30;
  std::string data("\x00\xc0", 2);  // -2
  data.append(reinterpret_cast<const char*>(floats), sizeof floats);
  data += std::string("\x80\x3f\x00\xc0", 4);  // 1, -2
  data += std::string(8, '\x07');
  data.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  const TensorFile file = decode_floats(with_header(header, 0) + data, "m");
  EXPECT_EQ(file.values, (std::vector<float>{-2.0f, 1.5f, -0x1p-149f, 1.0f, -2.0f, 1.0f}));
  ASSERT_EQ(file.tensors.size(), 4u);
  EXPECT_EQ(file.tensors[3].name, "double");
  EXPECT_EQ(file.tensors[3].offset, 5u);
  EXPECT_THROW(decode_safetensors(with_header(header, 0) + data, "m"), InputError);
  std::string infinite = with_header(header, 0) + data;
  infinite[infinite.size() - data.size() + 1] = '\x7c';
  EXPECT_THROW(decode_floats(infinite, "m"), InputError);
  const double huge = 1e300;  // infinite as float32
  std::memcpy(data.data() + 22, &huge, sizeof huge);
  EXPECT_THROW(decode_floats(with_header(header, 0) + data, "m"), InputError);
}

TEST(Safetensors, FindsTheMatrixAmongOtherTensors) {
  const std::string bytes =
      with_header(R"({"ids":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]},)"
                  R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},)"
                  R"("v":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}})",
                  24);
  EXPECT_EQ(decode_matrix(bytes, "m", "").columns, 2);
  EXPECT_THROW(decode_matrix(bytes, "m", "v"), InputError);
  EXPECT_THROW(decode_matrix(bytes, "m", "ids"), InputError);
  EXPECT_THROW(decode_safetensors(bytes, "m"), InputError);
  const std::string two = with_header(R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                                      R"("b":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]}})",
                                      16);
  try {
    decode_matrix(two, "m", "");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(),
                 "m: expected a matrix of F32 or F16, or the name of one (--embedding-tensor), "
                 "found a, b");
  }
  EXPECT_EQ(decode_matrix(two, "m", "b").rows, 2);
}

}  // namespace
}  // namespace cudp
