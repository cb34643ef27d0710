//! What looks like a fence and is none, beside the right way.

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, TransactWriteItem};
use leasehold_fence::{Outcome, Receiver as _};

use crate::world::{World, key, stamp};

/// The check is right when it is made. The write is stale when it is made.
#[tokio::test]
async fn wrong_way_get_then_put_writes_after_a_newer_holder() {
    let world = World::new().await;
    let (old, new) = (stamp("a", 33), stamp("a", 34));
    let seen = world.fence().look("a").await.unwrap();
    assert!(seen.highest.is_none_or(|mark| mark.token <= old.token()), "the old holder looks, and may");
    world.add_fenced(&new, "new").await.unwrap();
    world.add_anyway(&old, "old").await;
    assert_eq!(world.tokens("a").await, [34, 33], "corrupted");

    world.fence().seal(&stamp("b", 33)).await.unwrap();
    world.add_fenced(&stamp("b", 34), "new").await.unwrap();
    let error = world.add_fenced(&stamp("b", 33), "old").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Stale);
    assert_eq!(world.tokens("b").await, [34]);
}

/// A check compares and leaves nothing behind: the next one compares with what was there before.
#[tokio::test]
async fn wrong_way_a_condition_check_raises_nothing() {
    let world = World::new().await;
    world.fence().seal(&stamp("a", 1)).await.unwrap();
    for token in [34, 33] {
        let token = stamp("a", token);
        let check = ConditionCheck::builder()
            .table_name(&world.table)
            .set_key(Some(key("leasehold-fence#a").into()))
            .condition_expression("attribute_not_exists(#token) OR #token <= :token")
            .expression_attribute_names("#token", "token")
            .expression_attribute_values(":token", AttributeValue::N(token.token().to_string()));
        let check = TransactWriteItem::builder().condition_check(check.build().unwrap()).build();
        let both = world.client.transact_write_items().transact_items(check);
        both.transact_items(world.add(&token, "x")).send().await.unwrap();
    }
    assert_eq!(world.tokens("a").await, [34, 33], "corrupted");

    world.add_fenced(&stamp("b", 34), "x").await.unwrap();
    assert_eq!(world.add_fenced(&stamp("b", 33), "x").await.unwrap_err().outcome(), Outcome::Stale);
}

/// A token as text is compared letter by letter.
#[tokio::test]
async fn wrong_way_tokens_as_text_compare_by_letters() {
    let world = World::new().await;
    for token in ["9", "10"] {
        let write = world.client.update_item().table_name(&world.table).set_key(Some(key("x").into()));
        let write = write.update_expression("SET fence = :fence");
        let write = write.condition_expression("attribute_not_exists(fence) OR fence <= :fence");
        let write = write.expression_attribute_values(":fence", AttributeValue::S(token.into()));
        assert_eq!(write.send().await.is_ok(), token == "9", "the newer holder is shut out");
    }
    world.add_fenced(&stamp("a", 9), "x").await.unwrap();
    world.add_fenced(&stamp("a", 10), "x").await.unwrap();
}
