//! Ports in the OpenAPI document: one flat object, with what each key says and which kinds have it.

use super::changes::live_keys;
use super::{
    AfPacket, AfXdp, COMMON, PortKind, PortPatch, PortSpec, Tap, VhostUser, Vlink, Vxlan, port_help,
};
use crate::key::Key;
use crate::{NewRate, PortName, PortNumber, QueueSpec, Rate};
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema,
    SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

type Named = (String, RefOr<Schema>);

impl PartialSchema for PortSpec {
    fn schema() -> RefOr<Schema> {
        let mut object = closed("A port as a user wants it. Each kind has keys of its own.");
        object.required.push("type".into());
        for (name, schema) in common() {
            object.properties.insert(name, schema);
        }
        for key in PortKind::ALL.into_iter().flat_map(PortKind::keys) {
            let schema = || described(own(key.name), &help(key));
            object.properties.entry(key.name.into()).or_insert_with(schema);
        }
        object.into()
    }
}

impl ToSchema for PortSpec {
    fn schemas(schemas: &mut Vec<Named>) {
        add::<PortName>(schemas);
        add::<PortKind>(schemas);
        add::<PortNumber>(schemas);
        add::<Rate>(schemas);
        add::<QueueSpec>(schemas);
        Tap::schemas(schemas);
        AfPacket::schemas(schemas);
        AfXdp::schemas(schemas);
        Vlink::schemas(schemas);
        VhostUser::schemas(schemas);
        Vxlan::schemas(schemas);
    }
}

impl PartialSchema for PortPatch {
    fn schema() -> RefOr<Schema> {
        let mut object = closed("Changes to a port; what is left out stays.");
        let flag = |text| described(nullable_type(Type::Boolean), text);
        let up = "Administrative state: `false` is `OFPPC_PORT_DOWN`.";
        let rekey =
            "`true`: the file of a tunnel's keys is read again. SAs that it still has go on.";
        object.properties.insert("up".into(), flag(up));
        object.properties.insert("rekey".into(), flag(rekey));
        let rate = "Bit/s that leave by the port in all, or `none`.";
        object.properties.insert("rate".into(), described(named::<NewRate>(), rate));
        let all: Vec<Named> = common();
        for key in live_keys() {
            let shared = all.iter().find(|(name, _)| name == key.name);
            let schema = || shared.map_or_else(|| own(key.name), |(_, schema)| schema.clone());
            let entry = object.properties.entry(key.name.into());
            entry.or_insert_with(|| described(schema(), &help(key)));
        }
        object.into()
    }
}

impl ToSchema for PortPatch {
    fn schemas(schemas: &mut Vec<Named>) {
        add::<NewRate>(schemas);
        PortSpec::schemas(schemas);
    }
}

fn closed(description: &str) -> Object {
    let closed = AdditionalProperties::FreeForm(false);
    let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(description));
    object.additional_properties(Some(closed)).build()
}

fn common() -> Vec<Named> {
    let schema = |key: &Key| match key.name {
        "name" => named::<PortName>(),
        "type" => Ref::from_schema_name(PortKind::name()).into(),
        "number" => named::<PortNumber>(),
        "rate" => named::<Rate>(),
        "queue" => {
            ArrayBuilder::new().items(Ref::from_schema_name(QueueSpec::name())).build().into()
        }
        _ => nullable_number(),
    };
    COMMON.iter().map(|key| (key.name.into(), described(schema(key), key.help))).collect()
}

/// The property of that name of the first kind that has it; one that may be left out.
fn own(name: &str) -> RefOr<Schema> {
    let kinds = [
        Tap::schema(),
        AfPacket::schema(),
        AfXdp::schema(),
        Vlink::schema(),
        VhostUser::schema(),
        Vxlan::schema(),
    ];
    let property = |kind: RefOr<Schema>| match kind {
        RefOr::T(Schema::Object(mut object)) => object.properties.remove(name),
        _ => None,
    };
    match kinds.into_iter().find_map(property) {
        Some(RefOr::Ref(reference)) => nullable(reference),
        Some(schema) => schema,
        None => RefOr::T(Schema::default()),
    }
}

fn named<T: ToSchema>() -> RefOr<Schema> {
    nullable(Ref::from_schema_name(T::name()))
}

fn nullable(reference: Ref) -> RefOr<Schema> {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(reference).item(null).into()
}

fn nullable_type(of: Type) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([of, Type::Null])).into()
}

fn nullable_number() -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::Int32);
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
        .format(Some(format))
        .minimum(Some(0))
        .into()
}

/// What a key says, by kind where kinds differ, and which kinds have it.
fn help(key: &Key) -> String {
    let line = |(text, kinds): (&str, Vec<PortKind>)| {
        let words: Vec<_> = kinds.iter().map(|kind| format!("`{}`", kind.word())).collect();
        format!("{text} ({}).", words.join(", "))
    };
    port_help(key.name).into_iter().map(line).collect::<Vec<_>>().join(" ")
}

fn described(mut schema: RefOr<Schema>, text: &str) -> RefOr<Schema> {
    match &mut schema {
        RefOr::Ref(reference) => reference.description = text.into(),
        RefOr::T(Schema::Object(object)) => {
            (object.description, object.default) = (Some(text.into()), None);
        }
        RefOr::T(Schema::Array(array)) => array.description = Some(text.into()),
        RefOr::T(Schema::OneOf(either)) => {
            either.default = None;
            if let Some(RefOr::Ref(first)) = either.items.first_mut() {
                first.description = text.into();
            }
        }
        RefOr::T(_) => {}
    }
    schema
}

fn add<T: ToSchema>(schemas: &mut Vec<Named>) {
    schemas.push((T::name().into(), T::schema()));
    T::schemas(schemas);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Form;

    fn properties(schema: RefOr<Schema>) -> Vec<(String, RefOr<Schema>)> {
        match schema {
            RefOr::T(Schema::Object(object)) => object.properties.into_iter().collect(),
            _ => panic!("a kind is an object"),
        }
    }

    #[test]
    fn each_kind_has_a_row_in_its_table_for_each_field_of_its_struct() {
        for (kind, schema) in [
            (PortKind::Tap, Tap::schema()),
            (PortKind::AfPacket, AfPacket::schema()),
            (PortKind::AfXdp, AfXdp::schema()),
            (PortKind::Vlink, Vlink::schema()),
            (PortKind::VhostUser, VhostUser::schema()),
            (PortKind::Vxlan, Vxlan::schema()),
        ] {
            let mut keys: Vec<_> = kind.keys().iter().map(|key| key.name).collect();
            keys.sort_unstable();
            let fields = properties(schema);
            let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(keys, names, "{}", kind.word());
            for (name, schema) in &fields {
                let text = serde_json::to_string(schema).unwrap();
                let is_integer = text.contains("\"integer\"");
                let is_flag = text.contains("\"boolean\"");
                let key = kind.key(name).unwrap();
                assert_eq!(matches!(key.form, Form::Number(_)), is_integer, "{name}");
                assert_eq!(matches!(key.form, Form::Flag | Form::OnOff), is_flag, "{name}");
                assert!(text.contains("\"null\"") || key.needed.is_some(), "{name}");
            }
        }
    }

    #[test]
    fn every_key_of_every_kind_is_in_the_document_with_what_it_says() {
        for (name, schema) in properties(PortSpec::schema()) {
            assert!(serde_json::to_string(&schema).unwrap().contains("description"), "{name}");
        }
    }
}
