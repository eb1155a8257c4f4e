//! What `read` makes of images.

use std::io::Cursor;

use image::codecs::gif::GifEncoder;
use image::{DynamicImage, Frame, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use serde_json::json;

use crate::world::World;

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Red on its left half, blue on its right.
fn halves(width: u32, height: u32) -> DynamicImage {
    let colour = |x| if x < width / 2 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) };
    RgbImage::from_fn(width, height, |x, _| colour(x)).into()
}

/// Bytes that nothing can compress.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    RgbaImage::from_fn(width, height, |_, _| Rgba([next(), next(), next(), next()])).into()
}

/// What the model is told and given: a text, a media type, the bytes.
fn look(bytes: &[u8]) -> Result<(String, String, Vec<u8>), String> {
    let world = World::new();
    world.put("some/picture", bytes);
    let output = world.look(json!({ "path": "some/picture" }))?;
    let [file] = output.files.as_slice() else { panic!("{output:?}") };
    assert_eq!(file.name, "picture");
    Ok((output.text, file.media_type.clone(), world.context.blobs.get(file.content).unwrap()))
}

#[test]
fn small_images_go_as_they_are() {
    let formats = [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, "image/gif"),
        (ImageFormat::WebP, "image/webp"),
    ];
    for (format, kind) in formats {
        let bytes = encoded(&halves(40, 30), format);
        let (text, media_type, given) = look(&bytes).unwrap();
        assert_eq!((media_type.as_str(), &given), (kind, &bytes));
        assert_eq!(text, format!("[some/picture: {kind}, 40 × 30, 1 KiB]"));
    }
}

#[test]
fn large_images_are_made_small() {
    let photo = encoded(&halves(4_000, 3_000), ImageFormat::Jpeg);
    let (text, kind, given) = look(&photo).unwrap();
    assert!(text.contains("4000 × 3000") && text.contains("; shown: image/jpeg, 1238 × 928, "), "{text}");
    let shown = image::load_from_memory(&given).unwrap().to_rgb8();
    assert_eq!((kind.as_str(), shown.dimensions()), ("image/jpeg", (1_238, 928)));
    let Rgb([red, _, blue]) = *shown.get_pixel(10, 10);
    assert!(red > 200 && blue < 50, "the left half is still red: {red} {blue}");
    let (text, kind, given) = look(&encoded(&halves(3_000, 10), ImageFormat::Png)).unwrap();
    assert_eq!(kind, "image/png", "sharp edges stay sharp: {text}");
    assert_eq!(image::load_from_memory(&given).unwrap().to_rgb8().dimensions(), (1_568, 5));
}

#[test]
fn images_of_many_bytes_get_fewer() {
    let heavy = encoded(&noise(1_070, 1_070), ImageFormat::Png);
    let as_base64 = |bytes: &[u8]| bytes.len().div_ceil(3) * 4;
    assert!(as_base64(&heavy) > 5 << 20);
    let (text, kind, given) = look(&heavy).unwrap();
    assert!(as_base64(&given) <= 5 << 20, "{text}");
    assert_eq!(kind, "image/jpeg");
    assert_eq!(image::load_from_memory(&given).unwrap().to_rgb8().dimensions(), (1_070, 1_070));
}

#[test]
fn what_moves_is_shown_as_its_first_frame() {
    let mut bytes = Vec::new();
    let frame = |colour| Frame::new(RgbaImage::from_pixel(20, 10, colour));
    let frames = [frame(Rgba([255, 0, 0, 255])), frame(Rgba([0, 0, 255, 255]))];
    GifEncoder::new(&mut bytes).encode_frames(frames).unwrap();
    let (text, kind, given) = look(&bytes).unwrap();
    assert!(text.contains("; shown: the first frame as image/png, 20 × 10"), "{text}");
    let Rgba([red, _, blue, _]) = *image::load_from_memory(&given).unwrap().to_rgba8().get_pixel(5, 5);
    assert!(kind == "image/png" && red > 200 && blue < 50);
}

/// A photo that a camera took on its side: the tag says that it must be turned by 90 degrees.
#[test]
fn photos_are_turned_upright() {
    let plain = encoded(&halves(60, 20), ImageFormat::Jpeg);
    let tag = b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let turned = [&plain[..2], tag, &plain[2..]].concat();
    let (text, _, given) = look(&turned).unwrap();
    let shown = image::load_from_memory(&given).unwrap().to_rgb8();
    assert_eq!(shown.dimensions(), (20, 60), "{text}");
    let Rgb([red, _, blue]) = *shown.get_pixel(10, 5);
    assert!(red > 200 && blue < 50, "what was left is above: {red} {blue}");
}

/// A chunk of a PNG with its checksum.
fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(kind);
    crc.update(data);
    let length = u32::try_from(data.len()).unwrap();
    [&length.to_be_bytes(), kind.as_slice(), data, &crc.sum().to_be_bytes()].concat()
}

#[test]
fn a_small_file_that_unpacks_to_gigabytes_is_refused() {
    let size = 60_000_u32.to_be_bytes();
    let header = chunk(b"IHDR", &[&size[..], &size[..], &[8, 6, 0, 0, 0]].concat());
    let bomb = [b"\x89PNG\r\n\x1a\n", &header[..], &chunk(b"IDAT", b"x\x9c"), &chunk(b"IEND", b"")].concat();
    let refused = look(&bomb).unwrap_err();
    assert!(refused.contains("more than 256 MiB in memory") && refused.contains("smaller copy"), "{refused}");
    let mut gif = encoded(&halves(4, 4), ImageFormat::Gif);
    gif[6..10].copy_from_slice(&[0xff; 4]);
    let refused = look(&gif).unwrap_err();
    assert!(refused.contains("more than 256 MiB in memory"), "{refused}");
}

#[test]
fn broken_images_are_refused_with_what_is_wrong() {
    let png = encoded(&noise(40, 30), ImageFormat::Png);
    let refused = look(&png[..png.len() / 2]).unwrap_err();
    assert!(refused.starts_with("some/picture begins as image/png, but is broken: "), "{refused}");
    assert!(look(b"\x89PNG\r\n\x1a\n....").unwrap_err().contains("broken"));
    assert!(look(b"GIF89a....").unwrap_err().contains("broken"));
    assert!(look(b"RIFF\x01\x02\x03\x04WEBPVP8 ").unwrap_err().contains("broken"));
    assert!(look(b"\xff\xd8\xff\xe0....").unwrap_err().contains("broken"));
}
